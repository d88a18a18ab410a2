// Page 4: which operators take the time, by type, name and whatever else tells them apart; each row leads to its spans.
import type { View } from "../data/view";
import { AnalysisPage } from "../widgets/AnalysisPage";

const CELLS = ["name", "type", "shapes", "module", "line", "function"] as const;

const OperatorsPage = () => <AnalysisPage name="operators" label="Operators" cells={CELLS} />;

export const view: View = {
  name: "operators",
  title: "Operators",
  key: "4",
  component: OperatorsPage,
  chosen: ["row"],
};
