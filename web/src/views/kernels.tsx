// Page 5: which kernels take the time of each GPU, how they are launched and how full they make it.
import type { View } from "../state/view";
import { AnalysisPage } from "../widgets/tables/AnalysisPage";

const CELLS = ["name", "process", "device", "stream", "operator", "grid", "block", "collective", "dtype"] as const;
const ALSO = ["cumulative_share", "launch_delay_avg_ns", "queue_avg_ns", "tensor_cores", "occupancy"] as const;

const KernelsPage = () => <AnalysisPage name="kernels" label="Kernels" cells={CELLS} also={ALSO} />;

export const view: View = {
  name: "kernels",
  title: "Kernels",
  place: 5,
  component: KernelsPage,
  chosen: ["row"],
  analysis: "kernels",
};
