// What the charts use of ECharts, and nothing more of it.
import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { AxisPointerComponent, GridComponent, MarkAreaComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { init, use, type ECharts, type EChartsCoreOption } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";

use([
  BarChart, CustomChart, LineChart, ScatterChart,
  AxisPointerComponent, GridComponent, MarkAreaComponent, MarkLineComponent, TooltipComponent,
  SVGRenderer,
]);

export { init, type ECharts, type EChartsCoreOption as Option };
