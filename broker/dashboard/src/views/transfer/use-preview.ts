// SPDX-License-Identifier: Apache-2.0
// What an action would do, asked while its dialog is open, and asked again when what it would be changes.
import { useEffect, useState } from "react";
import { patch, post, url } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import type { TransferPreview } from "../../api/types";
import type { Change } from "./offers";

export interface Asked {
  path: string;
  /** Of a PATCH; without, the path is an action that takes no more. */
  change?: Change;
  /** Sent as If-Match: the answer is about exactly what is on the screen. */
  revision: number;
}

export interface Previewed {
  data: TransferPreview | undefined;
  problem: Problem | undefined;
  loading: boolean;
}

const TYPING_MS = 250;
const NOTHING: Previewed = { data: undefined, problem: undefined, loading: false };

/** null: there is nothing to ask about yet. */
export function usePreview(asked: Asked | null): Previewed {
  const key = asked === null ? "" : JSON.stringify(asked);
  const [answer, setAnswer] = useState<Previewed & { of: string }>({ ...NOTHING, of: "" });
  useEffect(() => {
    if (key === "") return;
    const { path, change, revision } = JSON.parse(key) as Asked;
    const controller = new AbortController();
    const where = url(path, { preview: true });
    const options = { signal: controller.signal, revision };
    const ask = async (): Promise<void> => {
      try {
        const data = change
          ? await patch<TransferPreview>(where, change, options)
          : await post<TransferPreview>(where, undefined, options);
        setAnswer({ ...NOTHING, data, of: key });
      } catch (reason) {
        if (!controller.signal.aborted) setAnswer({ ...NOTHING, problem: asProblem(reason), of: key });
      }
    };
    const timer = setTimeout(() => void ask(), change ? TYPING_MS : 0);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [key]);
  if (key === "") return NOTHING;
  return answer.of === key ? answer : { ...NOTHING, loading: true };
}
