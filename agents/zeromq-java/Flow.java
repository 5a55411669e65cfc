import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What all clients measured, as the protocol writes it. */
final class Flow {
    private Flow() {}

    static Map<String, Object> of(
            List<Player> players,
            Workload work,
            Workload.Window window,
            Map<Long, Books.Total> totals,
            List<String> remarks,
            List<Object> sentTotals)
            throws IOException {
        Map<String, Long> ledger = new LinkedHashMap<>();
        Map<String, List<Books.Histogram>> times = new LinkedHashMap<>();
        List<List<Books.Histogram>> slices = new ArrayList<>();
        List<Object> seen = new ArrayList<>();
        Books.Silences stalls = new Books.Silences();
        long arrived = 0, first = Workload.FOREVER, last = 0, pairs = 0, margin = 0;
        double jitter = 0, spent = 0, budget = 0;
        long[] sent = {}, delivered = {};
        for (String name :
                List.of(
                        "expected",
                        "delivered",
                        "duplicated",
                        "reordered",
                        "corrupted",
                        "unidentified",
                        "negative")) ledger.put(name, 0L);
        for (String name :
                List.of(
                        "latency",
                        "intended_latency",
                        "service_latency",
                        "send_lag",
                        "own_lag",
                        "receive_lag")) times.put(name, new ArrayList<>());
        for (Player player : players) {
            Player.Outgoing out = player.out;
            if (out != null) {
                if (out.firstSent > 0) first = Math.min(first, out.firstSent);
                sent = sum(sent, out.slices);
                if (out.schedule != null) {
                    times.get("send_lag").add(out.sendLag);
                    times.get("own_lag").add(out.ownLag);
                    spent += (double) player.pacer.spent / (window.to() - window.from());
                    budget += player.budget;
                    margin =
                            work.pacing.equals("spin")
                                    ? 0
                                    : Math.max(margin, player.pacer.margin());
                }
                if (out.sequence >= out.most)
                    remarks.add("a publisher stopped where no more messages can be accounted for");
            }
            Books.Incoming in = player.in;
            if (in == null || in.window == null) continue;
            in.close(
                    player.role.equals("requester") ? Map.of(player.id, out.total()) : totals,
                    player.killed);
            long[] counts = {
                in.expected,
                in.delivered,
                in.duplicated,
                in.reordered,
                in.corrupted,
                in.unidentified,
                in.negative
            };
            int at = 0;
            for (Map.Entry<String, Long> entry : ledger.entrySet())
                entry.setValue(entry.getValue() + counts[at++]);
            arrived += in.arrived;
            last = Math.max(last, in.last);
            jitter += in.jitter;
            pairs += in.jitterPairs;
            stalls.add(in.stalls.count, in.stalls.longest, in.stalls.longestAt);
            delivered = sum(delivered, in.slices);
            if (work.timed()) {
                times.get("latency").add(in.latency);
                times.get("intended_latency").add(in.intended);
                times.get("service_latency").add(in.service);
                if (player.role.equals("subscriber")) times.get("receive_lag").add(in.receiveLag);
            }
            for (int slice = 0; slice < in.sliceLatency.length; slice++) {
                if (slices.size() <= slice) slices.add(new ArrayList<>());
                slices.get(slice).add(in.sliceLatency[slice]);
            }
            for (int i = 0; work.competing() && i < in.streams.length; i++)
                seen.add(Map.of("publisher", in.first + i, "bits", in.streams[i].bits()));
        }
        Map<String, Object> histograms = new LinkedHashMap<>(),
                series = new LinkedHashMap<>(),
                flow = new LinkedHashMap<>();
        times.forEach((name, all) -> histograms.put(name, Books.Histogram.merged(all)));
        series.put("slice_ns", window == null ? 0 : window.slice());
        series.put("sent", window != null && window.open() ? trimmed(sent) : sent);
        series.put("delivered", window != null && window.open() ? trimmed(delivered) : delivered);
        List<Object> latency = new ArrayList<>();
        slices.forEach(all -> latency.add(Books.Histogram.merged(all)));
        series.put("latency", latency);
        flow.put("publishers", sentTotals);
        flow.put("ledger", ledger);
        flow.put("arrived", arrived);
        flow.put("first_sent_ns", first == Workload.FOREVER ? null : first);
        flow.put("last_arrival_ns", last == 0 ? null : last);
        flow.put("histograms", histograms);
        flow.put("jitter_sum_ns", jitter);
        flow.put("jitter_pairs", pairs);
        flow.put("series", series);
        flow.put("stalls", stalls.json());
        flow.put("seen", seen);
        if (budget > 0 || spent > 0)
            flow.put(
                    "pacing",
                    Map.of("budget_cores", budget, "spent_cores", spent, "margin_ns", margin));
        return flow;
    }

    private static long[] sum(long[] all, long[] more) {
        long[] sum = Arrays.copyOf(all, Math.max(all.length, more.length));
        for (int i = 0; i < more.length; i++) sum[i] += more[i];
        return sum;
    }

    private static long[] trimmed(long[] counts) {
        int length = counts.length;
        while (length > 0 && counts[length - 1] == 0) length--;
        return Arrays.copyOf(counts, length);
    }
}
