// SPDX-License-Identifier: Apache-2.0

package doctor

func (h Host) broker() []Finding {
	if h.Broker == nil {
		return []Finding{{State: Note, What: "broker", Found: "not asked: no enrolled state folder was given", Change: "give --state-dir, or join with bwb-agent enrol"}}
	}
	if err := h.Broker(); err != nil {
		return []Finding{{State: Todo, What: "broker", Found: err.Error(), Wanted: "an answer to this agent",
			Change: "see that the address is right and outgoing connections to it are allowed; if the token is refused, enrol anew with --force"}}
	}
	return []Finding{{State: OK, What: "broker", Found: "answers, and knows this agent"}}
}
