// SPDX-License-Identifier: Apache-2.0
// The components that views are made of.
export { Link } from "../router";
export { Button, ButtonLink, Copy } from "./button";
export { Confirm, Dialog } from "./dialog";
export { CheckField, Choice, Field, type Option, SearchField, SelectField, TextField } from "./field";
export { Icon, type IconName } from "./icons";
export { Card, Facts, Figure, View } from "./layout";
export { Duration, Meter, Progress, Rate, Share, Time, Volume } from "./quantities";
export { DurationField, RateField, TimeField, VolumeField } from "./quantity-field";
export { Answer, Denied, Empty, Failed, Loading, Notice, Refusal } from "./states";
export { type Column, Table } from "./table";
export { TabPanel, Tabs } from "./tabs";
export { stateName, Tag, type Tone } from "./tag";
export { toast } from "./toast";
