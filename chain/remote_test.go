package chain_test

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

// TestSchemasFetchNothing names a real server in every place of a schema that
// could be one to fetch.
func TestSchemasFetchNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var calls atomic.Int64
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			calls.Add(1)
			_ = conn.Close()
		}
	}()
	address := "http://" + listener.Addr().String()
	for _, schema := range []string{
		`{"$ref":"` + address + `/x.json"}`, `{"$schema":"` + address + `/meta"}`, `{"$id":"` + address + `/a","$ref":"b"}`, `{"$dynamicRef":"` + address + `/x#a"}`,
		`{"$id":"` + address + `/a","properties":{"a":{"$ref":"/b.json"}}}`, `{"allOf":[{"$recursiveRef":"` + address + `/x"}]}`, `{"$schema":"` + address + `","$vocabulary":{"` + address + `":true}}`,
		`{"anyOf":[{"$ref":"` + address + `/x.json#/$defs/a"},{}]}`, `{"contentSchema":{"$ref":"` + address + `/x"}}`, `{"format":"` + address + `"}`,
	} {
		req := ask()
		req.JSONSchema = &llm.JSONSchema{Schema: []byte(schema)}
		_ = complete(t.Context(), newRig(t, nil, fake.New(fake.Answer(`{"a":1}`))), req)
	}
	// What was to be fetched late, if anything, is here before a connection of ours.
	conn, err := net.DialTimeout("tcp", listener.Addr().String(), 5*time.Second)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.Eventually(t, func() bool { return calls.Load() > 0 }, 5*time.Second, time.Millisecond)
	require.EqualValues(t, 1, calls.Load())
	require.NoError(t, listener.Close())
	<-accepting
}
