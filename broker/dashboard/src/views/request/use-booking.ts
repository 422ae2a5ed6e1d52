// SPDX-License-Identifier: Apache-2.0
// Books once: while the outcome of an attempt is unknown, the same request is sent again with the same Idempotency-Key.
import { useRef } from "react";
import { newKey, post } from "../../api/client";
import { asProblem } from "../../api/problem";
import type { Transfer } from "../../api/types";
import { type Action, useAction } from "../../api/use";
import type { TransferBody } from "./form";

export function useBooking(): Action<[TransferBody], Transfer> {
  const attempt = useRef<{ text: string; key: string } | undefined>(undefined);
  return useAction(async (body: TransferBody) => {
    const text = JSON.stringify(body);
    if (attempt.current?.text !== text) attempt.current = { text, key: newKey() };
    try {
      return await post<Transfer>("/v1/transfers", body, { key: attempt.current.key });
    } catch (reason) {
      const { status } = asProblem(reason);
      // A refusal is kept with its key, too. Whoever asks again after it wants another answer.
      if (status >= 400 && status < 500) attempt.current = undefined;
      throw reason;
    }
  });
}
