// Page 4: which operators take the time, by type, name, shapes, module or source line; each row leads to its spans.
import type { View } from "../state/view";
import { AnalysisPage } from "../widgets/tables/AnalysisPage";

const CELLS = ["name", "type", "shapes", "module", "line", "function"] as const;
const ALSO = ["cumulative_share"] as const;

const OperatorsPage = () => <AnalysisPage name="operators" label="Operators" cells={CELLS} also={ALSO} />;

export const view: View = {
  name: "operators",
  title: "Operators",
  place: 4,
  component: OperatorsPage,
  chosen: ["row"],
  analysis: "operators",
};
