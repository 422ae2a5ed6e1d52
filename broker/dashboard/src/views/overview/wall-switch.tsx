// SPDX-License-Identifier: Apache-2.0
import { Button } from "../../ui";

/** For a screen on the wall: everything large, nothing to scroll, and nothing but the state of the network. */
export function WallSwitch({ on, onChange }: { on: boolean; onChange: (on: boolean) => void }) {
  const toggle = (): void => {
    // Fullscreen is a nicety: a browser that refuses it shows the same in its window.
    if (on) void document.exitFullscreen().catch(() => {});
    else void document.documentElement.requestFullscreen().catch(() => {});
    onChange(!on);
  };
  return (
    <Button kind="quiet" icon="screen" aria-pressed={on} onClick={toggle}>
      Wall screen
    </Button>
  );
}
