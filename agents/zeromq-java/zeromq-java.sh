#!/bin/sh
# Starts the agent: zeromq-java --binding jeromq|jzmq|null. JAVA_OPTS are switches of the runtime's.
here=$(dirname "$0")
command -v java >/dev/null || { echo "zeromq-java: there is no java: apt-get install openjdk-17-jre-headless" >&2; exit 1; }
# Before 9 it calls itself 1.8 and the like.
version=$(java -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1)
[ "${version:-17}" -ge 17 ] || {
  echo "zeromq-java: this is Java $version ($(command -v java)), and it needs 17 or newer: apt-get install openjdk-17-jre-headless, and put it before that on the PATH" >&2
  exit 1
}
case "$2" in
jeromq) path=$here/core:$here/jeromq:$here/lib/* ;;
jzmq) path=$here/core:$here/jzmq:/usr/share/java/zmq.jar ;;
*) path=$here/core ;;
esac
# Java cannot ask for exact timers; its threads inherit what the shell asks for.
echo 1 2>/dev/null >/proc/self/timerslack_ns
# What the runtime itself has to say goes to the log, not into the protocol.
exec java -XX:+DisplayVMOutputToStderr $JAVA_OPTS -cp "$path" Agent "$@"
