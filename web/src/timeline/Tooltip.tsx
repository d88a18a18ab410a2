// What lies under the pointer, in words.
import { css, GROUP_TITLES, groupColor } from "../base/color";
import { formatQuantity } from "../base/quantity";
import { formatDuration, length } from "../base/time";
import { RULER_HEIGHT, STEPS_HEIGHT } from "./header";
import { rowAt } from "./hit";
import { readingAt, seriesColor } from "./metrics";
import type { TimelineModel } from "./model";
import { groundOf } from "./Pane";
import { toNs } from "./viewport";

const TOOLTIP_GAP = 14;
/** --gutter of style/base.css, in CSS pixels. */
const GUTTER_WIDTH = 208;

export function Tooltip({ model }: { model: TimelineModel }) {
  const pointer = model.pointer.value;
  const hit = model.hit.value;
  const row = pointer && rowAt(groundOf(model, pointer.pane), pointer.y);
  if (!pointer || model.dragging.value || (!hit && row?.kind !== "metric")) return null;
  const theme = model.session.theme.value;
  const right = pointer.x > model.size.value.width * 0.62;
  const above = RULER_HEIGHT + STEPS_HEIGHT + (pointer.pane === model.main ? model.pinned.height.value : 0);
  const style = {
    top: `${pointer.y + above + TOOLTIP_GAP}px`,
    ...(right
      ? { right: `${model.size.value.width - pointer.x + TOOLTIP_GAP}px` }
      : { left: `${GUTTER_WIDTH + pointer.x + TOOLTIP_GAP}px` }),
  };
  if (hit)
    return (
      <div class="tooltip" style={style} role="tooltip">
        <div class="tooltip-name">
          <i style={{ background: css(groupColor(hit.group, theme)) }} />
          {hit.name}
        </div>
        <div class="weak">
          {hit.exact ? formatDuration(length(hit.range)) : `mostly this for ${formatDuration(length(hit.range))}`} ·{" "}
          {GROUP_TITLES[hit.group].toLowerCase()}
        </div>
      </div>
    );
  if (row?.kind !== "metric") return null;
  const at = toNs(pointer.x, model.window.value, model.size.value.width);
  return (
    <div class="tooltip" style={style} role="tooltip">
      {row.series.map((series, i) => {
        const value = readingAt(model.readings.value.get(series.series), at);
        return (
          <div key={series.series} class="tooltip-metric">
            <i style={{ background: css(seriesColor(i, theme)) }} />
            <span>{series.metric}</span>
            <b>{value === undefined ? "–" : formatQuantity(value, row.unit)}</b>
          </div>
        );
      })}
    </div>
  );
}
