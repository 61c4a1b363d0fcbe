package app_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
)

func TestLimitsByNameNeedTenants(t *testing.T) {
	const limited = "limits: {tenants: {acme: {concurrent: 1}}}\n" + echoConfig
	for tenants, want := range map[bool]bool{false: true, true: false} {
		env := joining(natstest.ListenServer(t))
		env.Tenants = tenants
		p := start(t, env, limited)
		require.Equal(t, want, strings.Contains(p.log.String(), "limits of tenants by name have no effect"))
		p.ended(t)
	}
}
