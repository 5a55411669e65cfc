// Prints the messages that the tests compare with, as Kafka's own classes write them: name and hexadecimal bytes.
//
//     java -cp 'lib/*' Vectors.java > vectors.txt
//
// with org.apache.kafka:kafka-clients:4.2.0 and org.slf4j:slf4j-simple:2.0.17 in lib.

import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.*;

public class Vectors {
    static final String TOPIC = "pubmark.r.0";

    static void print(String name, ByteBuffer bytes) {
        byte[] all = new byte[bytes.remaining()];
        bytes.get(all);
        System.out.println(name + " " + HexFormat.of().formatHex(all));
    }

    static void print(String name, int version, Message header, int headerVersion, ApiMessage body) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        int length = header.size(cache, (short) headerVersion) + body.size(cache, (short) version);
        ByteBuffer bytes = ByteBuffer.allocate(4 + length);
        bytes.putInt(length);
        ByteBufferAccessor out = new ByteBufferAccessor(bytes);
        header.write(out, cache, (short) headerVersion);
        body.write(out, cache, (short) version);
        bytes.flip();
        print(name, bytes);
    }

    static void request(String name, int version, ApiMessage body) {
        RequestHeaderData header = new RequestHeaderData();
        header.setRequestApiKey(body.apiKey()).setRequestApiVersion((short) version);
        print(name + "-request", version, header.setCorrelationId(7).setClientId("pbrp0"), 1, body);
    }

    static void response(String name, int version, ApiMessage body) {
        print(name + "-response", version, new ResponseHeaderData().setCorrelationId(7), 0, body);
    }

    static SimpleRecord record(String value) {
        return new SimpleRecord(RecordBatch.NO_TIMESTAMP, null, value.getBytes());
    }

    static SimpleRecord record(String key, String value) {
        return new SimpleRecord(RecordBatch.NO_TIMESTAMP, key.getBytes(), value.getBytes());
    }

    static MemoryRecords batch(long offset, long id, short epoch, int sequence, SimpleRecord... records) {
        return MemoryRecords.withRecords(RecordBatch.MAGIC_VALUE_V2, offset, Compression.NONE,
            TimestampType.CREATE_TIME, id, epoch, sequence, -1, false, records);
    }

    public static void main(String[] args) {
        MemoryRecords plain = batch(0, -1, (short) -1, -1, record("hello"), record(""), record("x".repeat(200)));
        print("batch", plain.buffer());
        MemoryRecords idempotent = batch(0, 4711, (short) 3, 12, record("hello"));
        print("batch-idempotent", idempotent.buffer());
        print("batch-keyed", batch(0, -1, (short) -1, -1, record("17", "hello"), record("", ""),
            record("x".repeat(200), "x".repeat(200))).buffer());
        for (int partitions : new int[] {1, 4, 64}) {
            ByteBuffer found = ByteBuffer.allocate(50);
            for (int key = 0; key < 50; key++) {
                found.put((byte) BuiltInPartitioner.partitionForKey(Integer.toString(key).getBytes(), partitions));
            }
            print("partitions-of-" + partitions, found.flip());
        }
        for (boolean isPlain : new boolean[] {true, false}) {
            request(isPlain ? "produce" : "produce-idempotent", 8, new ProduceRequestData().setAcks((short) -1).setTimeoutMs(30000)
                .setTopicData(new ProduceRequestData.TopicProduceDataCollection(List.of(
                    new ProduceRequestData.TopicProduceData().setName(TOPIC).setPartitionData(List.of(
                        new ProduceRequestData.PartitionProduceData().setIndex(0)
                            .setRecords(isPlain ? plain : idempotent)))).iterator())));
        }
        for (int error : new int[] {0, 87}) {
            ProduceResponseData.PartitionProduceResponse answer = new ProduceResponseData.PartitionProduceResponse()
                .setIndex(0).setErrorCode((short) error).setBaseOffset(41).setLogStartOffset(0);
            if (error != 0) {
                answer.setRecordErrors(List.of(new ProduceResponseData.BatchIndexAndErrorMessage().setBatchIndex(1)
                    .setBatchIndexErrorMessage("bad"))).setErrorMessage("one is bad");
            }
            response(error == 0 ? "produce" : "produce-error", 8, new ProduceResponseData().setResponses(
                new ProduceResponseData.TopicProduceResponseCollection(List.of(new ProduceResponseData.TopicProduceResponse()
                    .setName(TOPIC).setPartitionResponses(List.of(answer))).iterator())));
        }
        request("fetch", 10, new FetchRequestData().setMaxWaitMs(500).setMinBytes(1).setMaxBytes(1048576)
            .setTopics(List.of(new FetchRequestData.FetchTopic().setTopic(TOPIC).setPartitions(List.of(
                new FetchRequestData.FetchPartition().setPartition(0).setFetchOffset(41)
                    .setPartitionMaxBytes(1048576))))));
        MemoryRecords first = batch(40, -1, (short) -1, -1, record("hello"), record("world"));
        MemoryRecords second = batch(42, -1, (short) -1, -1,
            new SimpleRecord(5L, "key".getBytes(), "!".getBytes(), new org.apache.kafka.common.header.Header[] {
                new org.apache.kafka.common.header.internals.RecordHeader("name", "value".getBytes())}));
        MemoryRecords control = MemoryRecords.withEndTransactionMarker(43, 5L, -1, 4711, (short) 3,
            new EndTransactionMarker(ControlRecordType.COMMIT, 0));
        MemoryRecords gzip = MemoryRecords.withRecords(Compression.gzip().build(), record("hello"));
        ByteBuffer all = ByteBuffer.allocate(4096);
        for (MemoryRecords records : List.of(first, second, control)) {
            all.put(records.buffer());
        }
        // The broker cuts off what does not fit.
        ByteBuffer cut = plain.buffer();
        cut.limit(cut.limit() - 1);
        all.put(cut).flip();
        fetched("fetch", 0, MemoryRecords.readableRecords(all));
        fetched("fetch-empty", 0, MemoryRecords.EMPTY);
        fetched("fetch-error", 1, MemoryRecords.EMPTY);
        fetched("fetch-gzip", 0, gzip);
        request("list-offsets", 2, new ListOffsetsRequestData().setReplicaId(-1).setTopics(List.of(
            new ListOffsetsRequestData.ListOffsetsTopic().setName(TOPIC).setPartitions(List.of(
                new ListOffsetsRequestData.ListOffsetsPartition().setPartitionIndex(0).setTimestamp(-1))))));
        response("list-offsets", 2, new ListOffsetsResponseData().setTopics(List.of(
            new ListOffsetsResponseData.ListOffsetsTopicResponse().setName(TOPIC).setPartitions(List.of(
                new ListOffsetsResponseData.ListOffsetsPartitionResponse().setPartitionIndex(0).setTimestamp(-1)
                    .setOffset(41))))));
        request("metadata", 4, new MetadataRequestData().setAllowAutoTopicCreation(false).setTopics(List.of(
            new MetadataRequestData.MetadataRequestTopic().setName(TOPIC))));
        MetadataResponseData metadata = new MetadataResponseData().setClusterId("MkU3OEVBNTcwNTJENDM2Qk").setControllerId(1);
        metadata.brokers().add(new MetadataResponseData.MetadataResponseBroker().setNodeId(1).setHost("localhost").setPort(9092));
        metadata.topics().add(new MetadataResponseData.MetadataResponseTopic().setName(TOPIC).setPartitions(List.of(
            new MetadataResponseData.MetadataResponsePartition().setPartitionIndex(0).setLeaderId(1)
                .setReplicaNodes(List.of(1)).setIsrNodes(List.of(1)))));
        response("metadata", 4, metadata);
        request("api-versions", 0, new ApiVersionsRequestData());
        ApiVersionsResponseData versions = new ApiVersionsResponseData();
        for (int[] range : new int[][] {{0, 0, 13}, {1, 4, 18}, {2, 1, 11}, {3, 0, 13}, {17, 0, 1}, {18, 0, 4}, {19, 5, 7}, {20, 1, 6}, {22, 0, 5}, {36, 0, 2}}) {
            versions.apiKeys().add(new ApiVersionsResponseData.ApiVersion().setApiKey((short) range[0])
                .setMinVersion((short) range[1]).setMaxVersion((short) range[2]));
        }
        response("api-versions", 0, versions);
        CreateTopicsRequestData create = new CreateTopicsRequestData().setTimeoutMs(30000);
        create.topics().add(new CreateTopicsRequestData.CreatableTopic().setName(TOPIC).setNumPartitions(1)
            .setReplicationFactor((short) -1));
        request("create-topics", 4, create);
        CreateTopicsResponseData created = new CreateTopicsResponseData();
        created.topics().add(new CreateTopicsResponseData.CreatableTopicResult().setName(TOPIC).setErrorCode((short) 36)
            .setErrorMessage("it exists"));
        response("create-topics", 4, created);
        request("delete-topics", 3, new DeleteTopicsRequestData().setTopicNames(List.of(TOPIC)).setTimeoutMs(30000));
        DeleteTopicsResponseData deleted = new DeleteTopicsResponseData();
        deleted.responses().add(new DeleteTopicsResponseData.DeletableTopicResult().setName(TOPIC).setErrorCode((short) 3));
        response("delete-topics", 3, deleted);
        request("init-producer-id", 1, new InitProducerIdRequestData().setTransactionalId(null)
            .setTransactionTimeoutMs(Integer.MAX_VALUE));
        response("init-producer-id", 1, new InitProducerIdResponseData().setProducerId(4711).setProducerEpoch((short) 3));
        request("sasl-handshake", 1, new SaslHandshakeRequestData().setMechanism("PLAIN"));
        response("sasl-handshake", 1, new SaslHandshakeResponseData().setErrorCode((short) 33)
            .setMechanisms(List.of("SCRAM-SHA-256")));
        request("sasl-authenticate", 0, new SaslAuthenticateRequestData().setAuthBytes("\0u\0p".getBytes()));
        response("sasl-authenticate", 0, new SaslAuthenticateResponseData().setErrorCode((short) 58)
            .setErrorMessage("wrong").setAuthBytes(new byte[0]));
        group();
    }

    static final String GROUP = "pbr";
    static final String MEMBER = "pbrs0-1f";

    static byte[] bytes(int version, Message message) {
        ByteBuffer buffer = MessageUtil.toVersionPrefixedByteBuffer((short) version, message);
        byte[] all = new byte[buffer.remaining()];
        buffer.get(all);
        return all;
    }

    static void group() {
        byte[] subscription = bytes(0, new ConsumerProtocolSubscription().setTopics(List.of(TOPIC)));
        print("subscription", ByteBuffer.wrap(subscription));
        ConsumerProtocolAssignment assignment = new ConsumerProtocolAssignment();
        assignment.assignedPartitions().add(new ConsumerProtocolAssignment.TopicPartition().setTopic(TOPIC)
            .setPartitions(List.of(0, 2)));
        byte[] share = bytes(0, assignment);
        print("share", ByteBuffer.wrap(share));
        request("find-coordinator", 2, new FindCoordinatorRequestData().setKey(GROUP).setKeyType((byte) 0));
        response("find-coordinator", 2, new FindCoordinatorResponseData().setErrorCode((short) 15)
            .setErrorMessage("not yet").setNodeId(1).setHost("localhost").setPort(9092));
        JoinGroupRequestData join = new JoinGroupRequestData().setGroupId(GROUP).setSessionTimeoutMs(45000)
            .setRebalanceTimeoutMs(300000).setMemberId(MEMBER).setProtocolType("consumer");
        join.protocols().add(new JoinGroupRequestData.JoinGroupRequestProtocol().setName("range").setMetadata(subscription));
        request("join-group", 5, join);
        JoinGroupResponseData joined = new JoinGroupResponseData().setGenerationId(3).setProtocolName("range")
            .setLeader(MEMBER).setMemberId(MEMBER);
        for (String member : new String[] {MEMBER, "pbrs1-2e"}) {
            joined.members().add(new JoinGroupResponseData.JoinGroupResponseMember().setMemberId(member)
                .setMetadata(subscription));
        }
        response("join-group", 5, joined);
        response("join-group-error", 5, new JoinGroupResponseData().setErrorCode((short) 79).setGenerationId(-1)
            .setProtocolName("").setLeader("").setMemberId(MEMBER));
        request("sync-group", 3, new SyncGroupRequestData().setGroupId(GROUP).setGenerationId(3).setMemberId(MEMBER)
            .setAssignments(List.of(new SyncGroupRequestData.SyncGroupRequestAssignment().setMemberId(MEMBER)
                .setAssignment(share))));
        response("sync-group", 3, new SyncGroupResponseData().setAssignment(share));
        request("heartbeat", 3, new HeartbeatRequestData().setGroupId(GROUP).setGenerationId(3).setMemberId(MEMBER));
        response("heartbeat", 3, new HeartbeatResponseData().setErrorCode((short) 27));
        request("leave-group", 3, new LeaveGroupRequestData().setGroupId(GROUP).setMembers(List.of(
            new LeaveGroupRequestData.MemberIdentity().setMemberId(MEMBER))));
        response("leave-group", 3, new LeaveGroupResponseData().setMembers(List.of(
            new LeaveGroupResponseData.MemberResponse().setMemberId(MEMBER).setErrorCode((short) 25))));
        request("offset-commit", 7, new OffsetCommitRequestData().setGroupId(GROUP).setGenerationIdOrMemberEpoch(3)
            .setMemberId(MEMBER).setTopics(List.of(new OffsetCommitRequestData.OffsetCommitRequestTopic().setName(TOPIC)
                .setPartitions(List.of(new OffsetCommitRequestData.OffsetCommitRequestPartition().setPartitionIndex(2)
                    .setCommittedOffset(41).setCommittedMetadata(""))))));
        response("offset-commit", 7, new OffsetCommitResponseData().setTopics(List.of(
            new OffsetCommitResponseData.OffsetCommitResponseTopic().setName(TOPIC).setPartitions(List.of(
                new OffsetCommitResponseData.OffsetCommitResponsePartition().setPartitionIndex(2)
                    .setErrorCode((short) 22))))));
        request("offset-fetch", 5, new OffsetFetchRequestData().setGroupId(GROUP).setTopics(List.of(
            new OffsetFetchRequestData.OffsetFetchRequestTopic().setName(TOPIC).setPartitionIndexes(List.of(0, 2)))));
        response("offset-fetch", 5, new OffsetFetchResponseData().setTopics(List.of(
            new OffsetFetchResponseData.OffsetFetchResponseTopic().setName(TOPIC).setPartitions(List.of(
                new OffsetFetchResponseData.OffsetFetchResponsePartition().setPartitionIndex(0).setCommittedOffset(-1)
                    .setCommittedLeaderEpoch(-1).setMetadata(""),
                new OffsetFetchResponseData.OffsetFetchResponsePartition().setPartitionIndex(2).setCommittedOffset(41)
                    .setCommittedLeaderEpoch(-1).setMetadata(""))))));
        request("describe-groups", 4, new DescribeGroupsRequestData().setGroups(List.of(GROUP)));
        response("describe-groups", 4, new DescribeGroupsResponseData().setGroups(List.of(
            new DescribeGroupsResponseData.DescribedGroup().setGroupId(GROUP).setGroupState("Stable")
                .setProtocolType("consumer").setProtocolData("range").setMembers(List.of(
                    new DescribeGroupsResponseData.DescribedGroupMember().setMemberId(MEMBER).setClientId("pbrs0")
                        .setClientHost("/127.0.0.1").setMemberMetadata(subscription).setMemberAssignment(share))))));
        request("delete-groups", 1, new DeleteGroupsRequestData().setGroupsNames(List.of(GROUP)));
        DeleteGroupsResponseData deleted = new DeleteGroupsResponseData();
        deleted.results().add(new DeleteGroupsResponseData.DeletableGroupResult().setGroupId(GROUP)
            .setErrorCode((short) 68));
        response("delete-groups", 1, deleted);
    }

    static void fetched(String name, int error, MemoryRecords records) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        FetchResponseData.PartitionData partition = new FetchResponseData.PartitionData().setPartitionIndex(0)
            .setErrorCode((short) error).setHighWatermark(47).setLastStableOffset(47).setLogStartOffset(0)
            .setRecords(records);
        if (name.equals("fetch")) {
            partition.setAbortedTransactions(List.of(new FetchResponseData.AbortedTransaction().setProducerId(1)));
        } else {
            partition.setAbortedTransactions(null);
        }
        FetchResponseData body = new FetchResponseData().setResponses(List.of(
            new FetchResponseData.FetchableTopicResponse().setTopic(TOPIC).setPartitions(List.of(partition))));
        response(name, 10, body);
    }
}
