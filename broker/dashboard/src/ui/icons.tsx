// SPDX-License-Identifier: Apache-2.0
// Icons that show a state or a direction besides its colour. They have the colour of the text and are hidden from screen readers,
// for which the word beside them says the same.

const SHAPES = {
  good: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm-1 10.2L3.8 8l1.1-1.1L7 9l4.1-4.1L12.200 6z",
  warn: "M8 1.200 15.500 14.500H.5zM7.200 6v4.500h1.600V6zm0 5.600v1.500h1.600v-1.500z",
  bad: "M5 1h6l4 4v6l-4 4H5l-4-4V5zm.9 3.800-1.100 1.100L6.900 8l-2.100 2.100 1.100 1.100L8 9.100l2.100 2.100 1.100-1.100L9.100 8l2.100-2.100-1.100-1.100L8 6.900z",
  busy: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm0 1.600v10.800a5.400 5.400 0 0 1 0-10.800z",
  idle: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm0 1.600a5.400 5.400 0 1 1 0 10.800A5.400 5.400 0 0 1 8 2.600z",
  plain: "M2 2h12v12H2zm1.600 1.600v8.800h8.800V3.600z",
  up: "M8 4l5 7H3z",
  down: "M8 12 3 5h10z",
  both: "M8 2l3.500 5h-7zm0 12L4.500 9h7z",
  close: "M4 2.900 8 6.900l4-4L13.100 4l-4 4 4 4L12 13.100l-4-4-4 4L2.900 12l4-4-4-4z",
  search:
    "M6.500 1.500a5 5 0 1 0 3 9l3.600 3.600 1.100-1.100-3.600-3.600a5 5 0 0 0-4.100-7.900zm0 1.600a3.400 3.400 0 1 1 0 6.800 3.400 3.400 0 0 1 0-6.800z",
  copy: "M5 1h9v10h-3v-1.500h1.500v-7h-6V4H5zM2 5h8v10H2zm1.500 1.500v7h5v-7z",
  sun: "M8 4.500a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7zM7.300 0h1.400v3H7.300zm0 13h1.400v3H7.300zM0 7.300h3v1.400H0zm13 0h3v1.400h-3zM2 3l1-1 2.100 2.100-1 1zm8.900 8.900 1-1L14 13l-1 1zM3 14l-1-1 2.100-2.100 1 1zm8.900-8.900-1-1L13 2l1 1z",
  moon: "M6 1a7 7 0 1 0 9 9A6 6 0 0 1 6 1z",
  screen: "M1 2h14v9H9v2h3v1.500H4V13h3v-2H1zm1.500 1.500v6h11v-6z",
} as const;

export type IconName = keyof typeof SHAPES;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="1em" height="1em" aria-hidden="true" focusable="false">
      <path d={SHAPES[name]} fill="currentColor" fillRule="evenodd" />
    </svg>
  );
}
