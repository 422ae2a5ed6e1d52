// SPDX-License-Identifier: Apache-2.0
import { Button } from "../../../ui";

interface ControlsProps {
  onZoom: (factor: number) => void;
  onWhole: () => void;
  whole: boolean;
}

const STEP = 1.6;

export function Controls({ onZoom, onWhole, whole }: ControlsProps) {
  return (
    <div className="map-controls" role="group" aria-label="Zoom">
      <Button aria-label="Nearer" title="Nearer (+)" onClick={() => onZoom(STEP)}>
        +
      </Button>
      <Button aria-label="Farther" title="Farther (−)" disabled={whole} onClick={() => onZoom(1 / STEP)}>
        −
      </Button>
      <Button title="The whole network (0)" disabled={whole} onClick={onWhole}>
        Whole
      </Button>
    </div>
  );
}
