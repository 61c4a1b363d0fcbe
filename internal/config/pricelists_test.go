package config

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPriceListsAreWhole(t *testing.T) {
	hosts := map[string]bool{}
	for _, list := range priceLists {
		require.False(t, hosts[list.host], list.host)
		hosts[list.host] = true
		_, err := time.Parse(time.DateOnly, list.taken)
		require.NoError(t, err, list.host)
		require.True(t, strings.HasPrefix(list.source, "https://"), list.host)
		models := map[string]bool{}
		for _, p := range list.prices {
			require.False(t, models[p.model], "%s comes twice", p.model)
			models[p.model] = true
			require.Greater(t, p.Input, 0.0, p.model)
			require.GreaterOrEqual(t, p.Output, p.Input, p.model)
			require.Less(t, p.CachedInput, p.Input, p.model)
			require.NotRegexp(t, `latest`, p.model)
		}
	}
}
