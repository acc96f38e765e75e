// The plate of epochs: of which rows each is made.

import { text } from "../../drawing/years.js";
import { count } from "../../text/numbers.js";

/** @import { CommittedEpoch } from "../../data/answers.js" */
/** @import { Pen, Theme } from "../../drawing/canvas.js" */
/** @import { Plate } from "./plates.js" */

/** Pixels of a row. */
const LINE = 18;

/**
 * Whether an epoch wrote a row: the one before it, if there is one, lacks it.
 * @type {(epoch: CommittedEpoch, before: CommittedEpoch | undefined, row: number) => boolean}
 */
const isWritten = (epoch, before, row) =>
  before ? !before.rows.some((other) => other.row === row) : epoch.origin === "built";

/** @type {(context: Pen, epoch: CommittedEpoch, x: number, isNarrow: boolean, theme: Theme) => void} */
function drawTexts(context, { epoch, origin }, x, isNarrow, theme) {
  text(context, theme, isNarrow ? String(epoch) : `epoch ${epoch}`, x, 12, { colour: theme.ink });
  if (!isNarrow) text(context, theme, origin, x, 26, { colour: origin === "merged" ? theme.accent : theme.ink2 });
}

/** @type {(epochs: CommittedEpoch[]) => Plate} */
export function epochsPlate(epochs) {
  const shown = [...epochs].reverse();
  const numbers = new Set(shown.flatMap((epoch) => epoch.rows.map((row) => row.row)));
  const rows = [...numbers].sort((one, other) => one - other);
  const height = 62 + rows.length * LINE;
  return {
    title: "Epochs and rows",
    said: "Dark: a row that the epoch wrote. Accent: one merged of those before. Pale: one that it kept.",
    height,
    draw: (context, width, theme) => {
      const left = 60;
      const step = Math.min(110, (width - left) / shown.length);
      const isNarrow = step < 64;
      shown.forEach((epoch, at) => {
        const x = left + at * step;
        const dark = epoch.origin === "merged" ? theme.accent : theme.bar;
        drawTexts(context, epoch, x, isNarrow, theme);
        for (const { row } of epoch.rows) {
          context.fillStyle = isWritten(epoch, shown[at - 1], row) ? dark : theme.bar2;
          context.fillRect(x, 34 + rows.indexOf(row) * LINE, step - 1, 11);
        }
        if (!isNarrow) text(context, theme, count(epoch.captures), x, height - 8);
      });
      rows.forEach((row, at) => {
        text(context, theme, `row ${row}`, 0, 44 + at * LINE);
      });
      if (!isNarrow) text(context, theme, "captures", 0, height - 8);
    },
  };
}
