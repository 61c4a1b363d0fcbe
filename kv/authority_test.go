package kv

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

func TestOnlyALeaderWithAMajorityIsBelieved(t *testing.T) {
	heard := &jetstream.PeerInfo{Current: true, Active: 999 * time.Millisecond}
	silent := &jetstream.PeerInfo{Current: true, Active: unheard}
	never := &jetstream.PeerInfo{Lag: 8}
	offline := &jetstream.PeerInfo{Offline: true}
	for name, tc := range map[string]struct {
		leader   string
		replicas []*jetstream.PeerInfo
		want     error
	}{
		"alone":              {"n1", nil, nil},
		"no leader":          {"", []*jetstream.PeerInfo{heard, heard, heard}, errLeaderless},
		"all":                {"n1", []*jetstream.PeerInfo{heard, heard}, nil},
		"one of three lost":  {"n1", []*jetstream.PeerInfo{heard, silent}, nil},
		"two of three lost":  {"n1", []*jetstream.PeerInfo{silent, silent}, errMinority},
		"two of three gone":  {"n1", []*jetstream.PeerInfo{offline, silent}, errMinority},
		"never heard":        {"n1", []*jetstream.PeerInfo{never, silent}, errMinority},
		"two of five lost":   {"n1", []*jetstream.PeerInfo{silent, heard, heard, offline}, nil},
		"three of five lost": {"n1", []*jetstream.PeerInfo{silent, silent, heard, offline}, errMinority},
		"one of two lost":    {"n1", []*jetstream.PeerInfo{silent}, errMinority},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			info := &jetstream.StreamInfo{TimeStamp: now, Cluster: &jetstream.ClusterInfo{Leader: tc.leader, Replicas: tc.replicas}}
			require.ErrorIs(t, authoritative(info), tc.want, "of a server that does not say since when it leads")
			info.Cluster.LeaderSince = new(now.Add(-unheard))
			require.ErrorIs(t, authoritative(info), tc.want)
			if tc.leader != "" {
				info.Cluster.LeaderSince = new(now.Add(-time.Second))
				require.NoError(t, authoritative(info), "just elected")
			}
		})
	}
	require.NoError(t, authoritative(&jetstream.StreamInfo{}), "a server without a cluster")
}
