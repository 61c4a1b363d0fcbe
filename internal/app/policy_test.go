package app_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

func TestConfigurationIsReloaded(t *testing.T) {
	srv := natstest.ListenServer(t)
	p := start(t, joining(srv), echoConfig)
	nc := srv.Dial()
	features := buckets(t, nc).Features
	_, err := ask(t, nc, "other", "hello")
	require.ErrorIs(t, err, llm.ErrUnknownFeature)

	_, err = features.Put(t.Context(), "feature.other", []byte(`{"targets":[{"provider":"echo","model":"b"}]}`))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		resp, err := ask(t, nc, "other", "hello")
		return err == nil && resp.Model == "b"
	}, patience, tick)

	_, err = features.Put(t.Context(), "feature.other", []byte(`targets: nobody`))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return strings.Contains(p.log.String(), "llm_features/feature.other:1:1: features.other.targets: must be a list")
	}, patience, tick)
	_, err = ask(t, nc, "other", "hello")
	require.NoError(t, err, "the part that was in force stays")
	status, err := nc.Request(subjects.Status, nil, patience)
	require.NoError(t, err)
	require.Contains(t, string(status.Data), `"refused":["llm_features/feature.other:1:1: `)

	require.NoError(t, features.Delete(t.Context(), "feature.other", 0))
	require.Eventually(t, func() bool {
		_, err := ask(t, nc, "other", "hello")
		return errors.Is(err, llm.ErrUnknownFeature)
	}, patience, tick)
}

func TestPushedConfigurationSurvivesRestart(t *testing.T) {
	srv := natstest.ListenServer(t)
	p := start(t, joining(srv), echoConfig)
	nc := srv.Dial()
	_, err := buckets(t, nc).Features.Put(t.Context(), "feature.pushed", []byte(`targets: [{provider: echo, model: b}]`))
	require.NoError(t, err)
	p.ended(t)

	p = start(t, joining(srv), echoConfig)
	_, err = ask(t, nc, "pushed", "hello")
	require.NoError(t, err)
	p.ended(t)

	start(t, joining(srv), echoConfig+"# a new file\n")
	_, err = ask(t, nc, "pushed", "hello")
	require.ErrorIs(t, err, llm.ErrUnknownFeature)
}
