// The colours of the radar with what they mean at both ends.
import { css, radarColor } from "../base/color";
import { formatQuantity } from "../base/quantity";
import type { TimelineModel } from "./model/timelineModel";
import { measureTitle } from "./rows/radarMeasure";

const STOPS = 12;

export function RadarScale({ model }: { model: TimelineModel }) {
  const radar = model.rows.radar.value;
  if (!radar) return null;
  const theme = model.session.theme.value;
  const colors = Array.from({ length: STOPS + 1 }, (_, i) => css(radarColor(i / STOPS, theme)));
  const [low, high] = ends(model, radar);
  return (
    <div class="radar-scale row weak" role="img" aria-label={`Colours: ${measureTitle(radar)} from ${low} to ${high}`}>
      <span>{low}</span>
      <i style={{ background: `linear-gradient(to right, ${colors.join(", ")})` }} />
      <span>{high}</span>
    </div>
  );
}

/** The ends of the scale in words. Of a metric they are its extremes in the whole run, so that colours hold while one zooms. */
function ends(model: TimelineModel, radar: string): readonly [string, string] {
  if (!radar.startsWith("metric.")) return ["0 %", "100 %"];
  const series = model.rows.series.value.filter((one) => `metric.${one.metric}` === radar);
  const low = Math.min(0, ...series.map((one) => one.lowest));
  const high = Math.max(0, ...series.map((one) => one.highest));
  const unit = series[0]?.unit ?? "";
  return [formatQuantity(low, unit), formatQuantity(high, unit)];
}
