// SPDX-License-Identifier: Apache-2.0

package brokerclient

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// streamSilence ends a stream that went dead: the broker sends a comment every 10 s.
const streamSilence = 35 * time.Second

// Stream listens for "there is something new" and calls wake with each revision it hears of, until the stream ends.
// connected is called once it is open. The stream carries no state: a caller that is woken asks for the assignments.
func (c *Client) Stream(ctx context.Context, host string, connected func(), wake func(revision int64)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := c.request(ctx, http.MethodGet, "/v1/agents/"+url.PathEscape(host)+"/stream", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return problem(resp)
	}
	connected()
	dead := time.AfterFunc(streamSilence, cancel)
	defer dead.Stop()
	err = readEvents(resp.Body, func() { dead.Reset(streamSilence) }, wake)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// readEvents reads server-sent events; of all of them only "revision" means something here. Lines are bounded by the
// reader's buffer; a longer one ends the stream.
func readEvents(r io.Reader, alive func(), wake func(int64)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1024), 16<<10)
	var event, data string
	for lines.Scan() {
		alive()
		line := lines.Text()
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			var body struct{ Revision int64 }
			if event == "revision" && json.Unmarshal([]byte(data), &body) == nil {
				wake(body.Revision)
			}
			event, data = "", ""
		case field == "event":
			event = value
		case field == "data":
			data += value
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errors.New("stream closed by the broker")
}
