// SPDX-License-Identifier: Apache-2.0
// A slider over the next 24 hours: now, then every quarter of an hour. It plays only when asked to.
import { useEffect, useId, useState } from "react";
import { utc } from "../../format/time";
import { Button } from "../../ui";
import { instantOf, SPANS, stopName } from "./load";

interface TimeSliderProps {
  stop: number;
  onStop: (stop: number) => void;
  now: number;
}

const PLAY_MS = 300;

export function TimeSlider({ stop, onStop, now }: TimeSliderProps) {
  const id = useId();
  const [playing, setPlaying] = useState(false);
  useEffect(() => {
    if (!playing) return;
    const timer = setTimeout(() => (stop < SPANS ? onStop(stop + 1) : setPlaying(false)), PLAY_MS);
    return () => clearTimeout(timer);
  }, [playing, stop, onStop]);
  const play = (): void => {
    if (!playing && stop === SPANS) onStop(0);
    setPlaying(!playing);
  };
  const show = (chosen: number): void => {
    setPlaying(false);
    onStop(chosen);
  };
  const name = stopName(stop, now);
  const at = instantOf(stop, now);
  return (
    <div className="overview-time">
      <Button onClick={play} aria-pressed={playing}>
        {playing ? "Pause" : "Play"}
      </Button>
      <label htmlFor={id} className="unseen">
        Time that the map shows, over the next 24 hours
      </label>
      <input
        id={id}
        type="range"
        min={0}
        max={SPANS}
        value={stop}
        aria-valuetext={name}
        onChange={(event) => show(Number(event.target.value))}
      />
      <Button onClick={() => show(0)} disabled={stop === 0}>
        Now
      </Button>
      <output htmlFor={id} title={at === null ? undefined : utc(at)}>
        {name}
      </output>
    </div>
  );
}
