// SPDX-License-Identifier: Apache-2.0
// A canvas that fills its container, at the resolution of the screen and in the colours of the theme: the base of Gantt and map.
import { type HTMLAttributes, type ReactNode, useEffect, useRef } from "react";
import { type Colours, useColours } from "./colours";
import "./plot.css";

export interface Surface {
  /** In CSS pixels, as all that `draw` does: the ratio of the screen is already in the transformation. */
  width: number;
  height: number;
  ratio: number;
  colours: Colours;
}

export interface CanvasProps extends HTMLAttributes<HTMLCanvasElement> {
  /** For readers of the screen: what is drawn, in a sentence. Say the details beside it, in a table or a list. */
  label: string;
  /** Called at most once a frame: when it is another function (useCallback), and when size or theme change. */
  draw: (context: CanvasRenderingContext2D, surface: Surface) => void;
  /** Such as "30rem". */
  height: string;
  onSize?: (width: number, height: number) => void;
  /** Laid over the canvas: buttons, a hint at the pointer. */
  children?: ReactNode;
}

export function Canvas({ label, draw, height, onSize, children, role = "img", ...rest }: CanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const colours = useColours();
  const latest = useRef({ draw, colours, onSize });
  latest.current = { draw, colours, onSize };
  const request = useRef<() => void>(() => {});

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context) return;
    let frame = 0;
    const paint = (): void => {
      frame = 0;
      const ratio = window.devicePixelRatio;
      const { clientWidth: width, clientHeight: tall } = element;
      // Setting the size clears the canvas and costs an allocation: only when it is another.
      const [wide, high] = [Math.round(width * ratio), Math.round(tall * ratio)];
      if (element.width !== wide || element.height !== high) [element.width, element.height] = [wide, high];
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, tall);
      latest.current.draw(context, { width, height: tall, ratio, colours: latest.current.colours });
    };
    request.current = () => {
      frame ||= requestAnimationFrame(paint);
    };
    const resized = new ResizeObserver(() => {
      latest.current.onSize?.(element.clientWidth, element.clientHeight);
      request.current();
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
      cancelAnimationFrame(frame);
    };
  }, []);
  useEffect(() => request.current(), [draw, colours]);

  return (
    <div className="canvas" style={{ height }}>
      <canvas ref={canvas} role={role} aria-label={label} {...rest} />
      {children}
    </div>
  );
}

/** Where on the canvas an event happened, in CSS pixels. */
export function pointOf(event: { clientX: number; clientY: number; currentTarget: Element }): { x: number; y: number } {
  const box = event.currentTarget.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}
