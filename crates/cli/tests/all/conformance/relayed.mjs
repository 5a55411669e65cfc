// An agent whose clients reach their server, or each other, by a relay within this
// program, which also reads what it is told and what it says: so that one line makes
// of it an agent that measures wrongly, whatever it plays.
// node relayed.mjs PUBMARK
import { spawn } from "node:child_process";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";

const agent = spawn(process.argv[2], ["agent"], { stdio: ["pipe", "pipe", "inherit"] });
agent.on("close", (status) => process.exit(status ?? 1)); // after the last of its words

/** What it is told to play. */
function told(workload) {
  return workload;
}

/** What it says of a flow, and of itself. */
function measured(flow, result) {
  return flow;
}

/** A listener that hands on to whoever listens at `endpoint`; where it is. */
function relay(endpoint) {
  const [, scheme, host, port] = endpoint.match(/^(.*):\/\/(.*):(\d+)$/);
  const listener = createServer((near) => {
    const far = connect(Number(port), host);
    near.on("data", (bytes) => far.write(bytes));
    far.on("data", (bytes) => near.write(bytes));
    near.on("close", () => far.end());
    far.on("close", () => near.destroy());
    for (const socket of [near, far]) socket.on("error", () => {});
  });
  const url = () => `${scheme}://127.0.0.1:${listener.address().port}`;
  return new Promise((resolve) => listener.listen(0, "127.0.0.1", () => resolve(url())));
}

async function hand_back() {
  for await (const line of createInterface({ input: agent.stdout })) {
    const event = JSON.parse(line);
    for (const bound of event.endpoints ?? []) bound.endpoint = await relay(bound.endpoint);
    if (event.flows) event.flows = event.flows.map((flow) => measured(flow, event));
    process.stdout.write(`${JSON.stringify(event)}\n`);
  }
}

hand_back();
for await (const line of createInterface({ input: process.stdin })) {
  // A seed is more than a number can hold here: it stays a text.
  const command = JSON.parse(line.replace(/"seed":(\d+)/g, '"seed":"$1"'));
  if (command.server) command.server.endpoint = await relay(command.server.endpoint);
  for (const flow of command.flows ?? []) flow.workload = told(flow.workload);
  agent.stdin.write(`${JSON.stringify(command).replace(/"seed":"(\d+)"/g, '"seed":$1')}\n`);
}
agent.stdin.end();
