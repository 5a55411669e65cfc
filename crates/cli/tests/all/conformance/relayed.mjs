// An agent whose clients reach their server by a relay within this program: so that
// one line makes of it an agent whose clients do not die as they should.
// node relayed.mjs PUBMARK
import { spawn } from "node:child_process";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";

const agent = spawn(process.argv[2], ["agent"], { stdio: ["pipe", "inherit", "inherit"] });
agent.on("exit", (status) => process.exit(status ?? 1));

/** A listener that hands on to the server at `endpoint`; where it is. */
function relay(endpoint) {
  const [, host, port] = endpoint.match(/^mqtt:\/\/(.*):(\d+)$/);
  const listener = createServer((near) => {
    const far = connect(Number(port), host);
    near.on("data", (bytes) => far.write(bytes));
    far.on("data", (bytes) => near.write(bytes));
    near.on("close", () => far.end());
    far.on("close", () => near.destroy());
    for (const socket of [near, far]) socket.on("error", () => {});
  });
  const url = () => `mqtt://127.0.0.1:${listener.address().port}`;
  return new Promise((resolve) => listener.listen(0, "127.0.0.1", () => resolve(url())));
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  if (command.server) command.server.endpoint = await relay(command.server.endpoint);
  agent.stdin.write(`${JSON.stringify(command)}\n`);
}
agent.stdin.end();
