// Starts the agent, unless this Node cannot play it. Nothing here is newer than what an old one reads.
var least = 20;
if (Number(process.versions.node.split(".")[0]) >= least) {
  import("./conversation.mjs").then(function (agent) {
    agent.play();
  });
} else {
  process.stderr.write(
    "zeromq-node: this is Node " +
      process.versions.node +
      " (" +
      process.execPath +
      "), and it needs " +
      least +
      " or newer: put one before it on the PATH (https://nodejs.org/en/download)\n",
  );
  process.exitCode = 1;
}
