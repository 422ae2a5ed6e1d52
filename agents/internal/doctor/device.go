// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bandwidthbroker/agents/internal/tclinux"
)

// device is a network device as /sys/class/net shows it.
type device struct {
	name, duplex string
	mtu          int64
	speedBps     int64 // 0: it does not say
}

// devices returns those that were named, else the physical ones that are up, else all that are up.
func (h Host) devices() []device {
	names := h.Devices
	if len(names) == 0 {
		entries, _ := os.ReadDir(filepath.Join(h.Root, "sys/class/net"))
		var virtual []string
		for _, e := range entries {
			name := e.Name()
			if name == "lo" || h.read(filepath.Join("sys/class/net", name, "operstate")) == "down" {
				continue
			}
			if _, err := os.Stat(filepath.Join(h.Root, "sys/class/net", name, "device")); err == nil {
				names = append(names, name)
			} else {
				virtual = append(virtual, name)
			}
		}
		if len(names) == 0 {
			names = virtual
		}
	}
	var made []device
	for _, name := range names {
		d := device{name: name, duplex: h.read(filepath.Join("sys/class/net", name, "duplex"))}
		d.mtu, _ = h.number(filepath.Join("sys/class/net", name, "mtu"), 0)
		if mbit, ok := h.number(filepath.Join("sys/class/net", name, "speed"), 0); ok && mbit > 0 {
			d.speedBps = mbit * 1_000_000
		}
		made = append(made, d)
	}
	return made
}

func (h Host) deviceFindings(devices []device) []Finding {
	if len(devices) == 0 {
		return []Finding{{State: Todo, What: "network", Found: "no device is up"}}
	}
	var made []Finding
	roots, err := h.Roots()
	if err != nil {
		made = append(made, Finding{State: Note, What: "qdiscs", Found: err.Error()})
	}
	for _, d := range devices {
		if d.mtu == 0 {
			made = append(made, Finding{State: Todo, What: d.name, Found: "no such device"})
			continue
		}
		made = append(made, h.speed(d))
		if err == nil {
			made = append(made, qdisc(d, roots))
		}
		made = append(made, h.offload(d)...)
	}
	return append(made, h.mtus(devices)...)
}

func (h Host) speed(d device) Finding {
	f := Finding{State: OK, What: d.name + ": link", Found: fmt.Sprintf("%s, %s duplex", rate(d.speedBps), d.duplex)}
	switch {
	case d.speedBps == 0:
		f.State, f.Found = Note, "the device does not say its speed"
	case d.duplex == "half":
		f.State, f.Wanted, f.Change = Todo, "full duplex", "see to the cable and to autonegotiation at both ends (ethtool "+d.name+")"
	case h.RateBps > d.speedBps:
		f.State, f.Wanted = Todo, rate(h.RateBps)+", the rate that was asked for"
		f.Change = "register the host's link with the speed that it has, or change cable, port or card"
	}
	return f
}

// shapers are qdiscs that hold traffic to a rate by themselves.
var shapers = []string{"htb", "tbf", "hfsc", "cbq", "netem", "cake", "taprio", "etf"}

func qdisc(d device, roots []tclinux.Qdisc) Finding {
	f := Finding{State: OK, What: d.name + ": qdisc", Found: "none"}
	for _, q := range roots {
		if q.Device != d.name {
			continue
		}
		f.Found = q.Kind
		switch {
		case q.Handle == tclinux.Handle && q.Kind == "htb":
			f.Found = "htb, of a bwb-agent"
		case q.Handle == 0:
			f.Found += ", by the kernel's choice"
		case slices.Contains(shapers, q.Kind):
			f.State, f.Found = Todo, f.Found+", configured by somebody"
			f.Wanted = "fq, or the kernel's choice: this one may hold transfers back, and leaves no room for mechanism htb"
			f.Change = "tc qdisc del dev " + d.name + " root"
		default:
			f.State, f.Found = Note, f.Found+", configured by somebody"
			f.Wanted, f.Change = "the kernel's choice, for mechanism htb and mode observed only", "tc qdisc del dev "+d.name+" root"
		}
	}
	return f
}

func (h Host) offload(d device) []Finding {
	tso, gso, err := h.Offload(d.name)
	if err != nil {
		return nil // a device without these settings
	}
	word := map[bool]string{true: "on", false: "off"}
	f := Finding{State: OK, What: d.name + ": offload", Found: "tso " + word[tso] + ", gso " + word[gso]}
	if !tso || !gso {
		f.State, f.Wanted, f.Change = Note, "both on: above some Gbit/s a processor does not keep up without", "ethtool -K "+d.name+" tso on gso on"
	}
	return []Finding{f}
}

// jumbo frames are worth it from here on; measured by ESnet (fasterdata.es.net).
const jumboFrom = 10_000_000_000

func (h Host) mtus(devices []device) []Finding {
	var made []Finding
	var texts []string
	sizes := map[int64]bool{}
	large := false
	for _, d := range devices {
		if d.mtu == 0 {
			continue
		}
		sizes[d.mtu] = true
		large = large || d.mtu > 1500
		texts = append(texts, fmt.Sprintf("%s %d", d.name, d.mtu))
	}
	f := Finding{State: OK, What: "mtu", Found: strings.Join(texts, ", ")}
	if len(sizes) > 1 {
		f.State = Note
		f.Wanted = "one size on all data devices and on the whole path, or packets that are too large vanish"
		f.Change = "ip link set DEVICE mtu SIZE; try a path with ping -M do -s SIZE-28 PEER"
	}
	for _, d := range devices {
		if len(sizes) == 1 && d.speedBps >= jumboFrom && d.mtu > 0 && d.mtu < 8000 {
			f.State, f.Wanted = Note, "9000 on links of 10 Gbit/s and more, if the whole path carries it"
			f.Change = "ip link set " + d.name + " mtu 9000"
		}
	}
	made = append(made, f)
	if probing := h.sysctl("net.ipv4.tcp_mtu_probing"); large && probing == "0" {
		made = append(made, Finding{Todo, "net.ipv4.tcp_mtu_probing", probing, "1: with large packets, a path that drops them in silence is found out", "sysctl -w net.ipv4.tcp_mtu_probing=1"})
	}
	return made
}

// rate as people write it.
func rate(bps int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1_000_000_000, "Gbit/s"}, {1_000_000, "Mbit/s"}, {1_000, "kbit/s"}} {
		if bps >= unit.size {
			return fmt.Sprintf("%.4g %s", float64(bps)/float64(unit.size), unit.name)
		}
	}
	return fmt.Sprintf("%d bit/s", bps)
}
