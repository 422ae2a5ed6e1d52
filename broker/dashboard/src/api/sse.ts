// SPDX-License-Identifier: Apache-2.0
// Reads text/event-stream. Not the browser's EventSource: that hands out only events whose names are known beforehand, hides the
// heartbeats by which a dead connection is told from a quiet one, and retries for ever without saying that the session has ended.

export interface StreamMessage {
  id: string | undefined;
  data: string;
}

/** Takes text in any pieces and gives whole messages; comments and names of events are left out. */
export class StreamParser {
  /** The last id that was seen, also of a message without data. */
  lastId: string | undefined;
  private rest = "";
  private data: string[] = [];

  /** A new connection: half a message of the one before is of no use. */
  restart(): void {
    this.rest = "";
    this.data = [];
  }

  feed(text: string): StreamMessage[] {
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    const messages: StreamMessage[] = [];
    for (const line of lines) {
      if (line !== "") this.take(line);
      else if (this.data.length > 0) {
        messages.push({ id: this.lastId, data: this.data.join("\n") });
        this.data = [];
      }
    }
    return messages;
  }

  private take(line: string): void {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.data.push(value);
    else if (name === "id" && !value.includes("\0")) this.lastId = value;
  }
}
