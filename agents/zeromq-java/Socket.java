import java.util.List;
import java.util.Map;

/** What a client plays with. One thread uses it. */
interface Socket {
    /** A socket to open; its kind is called by ZeroMQ's name. */
    record Order(String kind, Workload work, Options options, String bind, List<String> connect) {}

    /** Where others connect to, if it was bound. */
    String endpoint();

    /**
     * Offers a message, for 10 ms or so; false: refused for now. The array is the caller's again
     * afterwards.
     */
    boolean send(byte[] message, int length);

    /** Waits for a message, for 10 ms or so; its length, or −1: none came. */
    int receive();

    /** The message that came, until the next call. */
    byte[] message();

    /** Closes it, and throws away what is queued. */
    void crash();

    /** A way to ZeroMQ, or none. */
    interface Binding {
        List<String> knows();

        List<String> transports();

        Socket open(Order order) throws Exception;

        /** Options as they took effect. */
        Map<String, Object> applied(Order order, Socket socket);

        Map<String, Object> versions();

        /** How it is made: binding, library, copies. */
        Map<String, Object> made(Options options);
    }
}
