package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/config"
)

// echo is a whole file with a hole for more of its feature.
const echo = "providers: {echo: {}, two: {kind: echo}}\nfeatures:\n  default:\n    targets: [{provider: echo, model: echo}]\n"

// ruled is the same with data rules and without the second provider.
const ruled = "data_rules: {classes: [public, internal]}\nproviders: {echo: {approved_for: [public]}}\nfeatures:\n  default:\n    targets: [{provider: echo, model: echo}]\n"

// pair is the same with two targets.
const pair = "providers: {echo: {}, two: {kind: echo}}\nfeatures:\n  default:\n    targets: [{provider: echo, model: a}, {provider: two, model: b}]\n"

const withTarget = "providers: {echo: {}}\nfeatures: {default: {targets: ["

const withProvider = "features: {default: {targets: [{provider: p, model: m}]}}\nproviders:\n  p:\n"

var refusals = []struct {
	name, file string
	want       []string // without "f.yaml:"
}{
	{"empty", "", []string{" features: names no feature; add one, such as features: {default: {targets: [{provider: echo, model: echo}]}}"}},
	{"not a mapping", "- a", []string{"1:1: must be a mapping of keys to values"}},
	{"syntax", "a: [1\nkey: sk-secret", []string{"2:1: not valid YAML: ',' or ']' must be specified"}},
	{"twice", "features: {}\nfeatures: {}", []string{`2:1: not valid YAML: mapping key "features" already defined at [1:1]`}},
	{"two documents", echo + "---\na: 1", []string{"6:2: a second document begins here; keep to one"}},
	{"misspelt at the top", "feature: {}\n" + echo, []string{"1:1: feature: unknown key; did you mean features?"}},
	{"unknown at the top", "nonsense: {}\n" + echo, []string{"1:1: nonsense: unknown key; known here are breaker, data_rules, features, limits, providers"}},
	{"no value", echo + "    timeout:\n", []string{"5:5: features.default.timeout: has no value; write one, or remove the key for the default"}},
	{"anchor", echo + "    timeout: &x 5s\n", []string{"5:5: features.default.timeout: must be a time with its unit, such as 20s, from 10ms to 1h; anchors and aliases are not taken, write the value out"}},

	{"zero threshold", "breaker: {threshold: 0}\n" + echo, []string{"1:11: breaker.threshold: must be a whole number from 1 to 1000"}},
	{"zero is not off", "breaker: {ramp: 0s}\n" + echo, []string{"1:11: breaker.ramp: must be a time with its unit, such as 20s, from 1ms to 24h, or off"}},
	{"no unit", "breaker: {window: 30}\n" + echo, []string{"1:11: breaker.window: must be a time with its unit, such as 20s, from 1ms to 24h"}},
	{"bounds of package breaker", "breaker: {cool_down: 1h, max_cool_down: 1m}\n" + echo, []string{"1:26: breaker.max_cool_down: must be 1h0m0s to 24h0m0s, not 1m0s"}},
	{"scope", "breaker: {scope: fleet}\n" + echo, []string{"1:11: breaker.scope: must be model or provider"}},

	{"no limit", "limits: {}\n" + echo, []string{"1:9: limits: needs default, tenants or both; such as default: {requests_per_minute: 600}"}},
	{"empty limits", "limits: {default: {}, tenants: {acme: }}\n" + echo, []string{
		"1:19: limits.default: sets no limit; name one, such as requests_per_minute: 600",
		"1:33: limits.tenants.acme: sets no limit; name one, such as requests_per_minute: 600"}},
	{"misspelt limit", "limits: {default: {request_per_minute: 1}}\n" + echo, []string{
		"1:20: limits.default.request_per_minute: unknown key; did you mean requests_per_minute?"}},
	{"amounts of limits", "limits: {default: {requests_per_minute: 0, tokens_per_day: -5, usd_per_day: 0, usd_per_hour: lots, concurrent: 1.5}}\n" + echo, []string{
		"1:20: limits.default.requests_per_minute: must be a whole number from 1 to 1e15, or off",
		"1:44: limits.default.tokens_per_day: must be a whole number from 1 to 1e15, or off",
		"1:64: limits.default.usd_per_day: must be an amount of US dollars above 0, up to 1e+09, or off",
		"1:80: limits.default.usd_per_hour: must be an amount of US dollars above 0, up to 1e+09, or off",
		"1:100: limits.default.concurrent: must be a whole number from 1 to 1e15, or off"}},
	{"limits of a feature", echo + "    limits: {default: {concurrent: none}, tenant: {}}\n", []string{
		"5:24: features.default.limits.default.concurrent: must be a whole number from 1 to 1e15, or off",
		"5:43: features.default.limits.tenant: unknown key; did you mean tenants?"}},

	{"no kind", withProvider + "    {base_url: http://h}", []string{"3:3: providers.p.kind: is missing; it must be openai, anthropic, ollama, gemini or echo"}},
	{"wrong kind", withProvider + "    {kind: openia}", []string{"4:6: providers.p.kind: must be openai, anthropic, ollama, gemini or echo"}},
	{"name of provider", strings.ReplaceAll(withProvider, " p", " P.1") + "    {kind: echo}",
		[]string{"3:3: providers.P.1: the name of a provider must be 1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit"}},
	{"key in the file", withProvider + "    {kind: openai, api_key: sk-secret}",
		[]string{"4:20: providers.p.api_key: a key must not be written here; name the environment variable that holds it in api_key_env, or a file in api_key_file"}},
	{"key instead of its variable", withProvider + "    {kind: openai, api_key_env: sk-secret}",
		[]string{"4:20: providers.p.api_key_env: must be the name of an environment variable, such as OPENAI_API_KEY, and not the key itself"}},
	{"two keys", withProvider + "    {kind: openai, api_key_env: K, api_key_file: /k}",
		[]string{"4:36: providers.p.api_key_file: cannot be set together with api_key_env; remove one"}},
	{"credentials in a URL", withProvider + "    {kind: openai, base_url: \"https://u:secret@h\"}",
		[]string{"4:20: providers.p.base_url: must hold no credentials; set the API key instead"}},
	{"header of the client", withProvider + "    {kind: openai, headers: {Idempotency-Key: secret}}",
		[]string{"4:20: providers.p.headers: Idempotency-Key would let calls be repeated unseen"}},
	{"header twice", withProvider + "    {kind: openai, headers: {X-A: a, x-a: b}}",
		[]string{"4:38: providers.p.headers.x-a: comes twice, since case does not matter in names of headers"}},
	{"azure without base_url", withProvider + "    {kind: openai, azure: {api_version: v1}}", []string{"3:3: providers.p: base_url must be set for azure"}},
	{"not for echo", withProvider + "    {kind: echo, base_url: http://h}",
		[]string{"4:18: providers.p.base_url: unknown key; known here are approved_for, breaker, kind, models, regions"}},
	{"capability", withProvider + "    {kind: echo, models: {m: {tools: yes, context_window: 0}}}", []string{
		"4:31: providers.p.models.m.tools: must be true or false",
		"4:43: providers.p.models.m.context_window: must be a whole number from 1 to 1000000000"}},
	{"capability without its base", withProvider + "    {kind: echo, models: {m: {image_urls: true}}}", []string{"4:31: providers.p.models.m.image_urls: needs vision: true"}},
	{"half a price", withProvider + "    {kind: echo, models: {m: {price: {input: 1, cached_input: 0}}}}", []string{
		"4:39: providers.p.models.m.price: needs both input and output, in US dollars per million tokens",
		"4:49: providers.p.models.m.price.cached_input: must be above 0; remove the key if cached input costs as much as input"}},

	{"name of feature", "providers: {echo: {}}\nfeatures: {Default: {targets: [{provider: echo, model: echo}]}}",
		[]string{"2:12: features.Default: the name of a feature must be 1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit"}},
	{"no targets", "features: {default: }", []string{"1:12: features.default.targets: names no target; add one, such as targets: [{provider: echo, model: echo}]"}},
	{"empty targets", "features: {default: {targets: []}}", []string{"1:22: features.default.targets: names no target; add one, such as targets: [{provider: echo, model: echo}]"}},
	{"incomplete target", withTarget + "{provider: echo}]}}", []string{"2:33: features.default.targets[0].model: is missing"}},
	{"unknown provider", withTarget + "{provider: ehco, model: m}]}}", []string{`2:33: features.default.targets[0].provider: there is no provider "ehco"; did you mean echo?`}},
	{"another provider", withTarget + "{provider: openai, model: m}]}}",
		[]string{`2:33: features.default.targets[0].provider: there is no provider "openai"; add it under providers, or use one of echo`}},
	{"same target twice", withTarget + "{provider: echo, model: m}, {provider: echo, model: m}]}}",
		[]string{"2:77: features.default.targets[1].model: the same provider and model come twice; set attempts on the first instead"}},
	{"attempts", withTarget + "{provider: echo, model: m, attempts: 0}]}}", []string{"2:59: features.default.targets[0].attempts: must be a whole number from 1 to 10"}},
	{"timeout of an only target", withTarget + "{provider: echo, model: m, timeout: 5s}]}}",
		[]string{"2:59: features.default.targets[0].timeout: does not apply to an only target, which gets all the time there is; set the feature's timeout"}},
	{"first token of the last target", withTarget + "{provider: echo, model: m, first_token_timeout: 5s}]}}",
		[]string{"2:59: features.default.targets[0].first_token_timeout: does not apply to the last target, which gets all the time that remains; remove it"}},
	{"limits above their whole", withTarget + "{provider: echo, model: a, timeout: 40s}, {provider: echo, model: b, idle_timeout: 30s}]}}", []string{
		"2:59: features.default.targets[0].timeout: must not be above the feature's timeout of 30s",
		"2:101: features.default.targets[1].idle_timeout: must be below the feature's timeout of 30s"}},

	{"class", echo + "    class: batch\n", []string{"5:5: features.default.class: must be interactive, background or structured"}},
	{"fail over to nobody", echo + "    on_quota: fail_over\n", []string{"5:5: features.default.on_quota: fail_over needs a second target"}},
	{"wait without attempts", pair + "    on_rate_limit: wait\n    targets2: 1\n", []string{"6:5: features.default.targets2: unknown key; did you mean targets?"}},
	{"restart on nobody", echo + "    on_interrupt: restart\n", []string{"5:5: features.default.on_interrupt: restart needs a second target that can stream"}},
	{"on_interrupt", echo + "    on_interrupt: job\n", []string{"5:5: features.default.on_interrupt: must be error, restart or queue"}},
	{"jobs", echo + "    jobs: {timeout: 1, backoff: []}\n", []string{
		"5:12: features.default.jobs.timeout: must be a time with its unit, such as 20s, from 10ms to 1h",
		"5:24: features.default.jobs.backoff: must be a list in brackets of 1 to 20 times, such as [5s, 15s]"}},
	{"backoff", echo + "    jobs: {backoff: [5s, soon]}\n", []string{"5:12: features.default.jobs.backoff: must hold times with their unit, such as 20s, from 10ms to 1h"}},
	{"commit on nothing", echo + "    commit_after: {}\n", []string{"5:19: features.default.commit_after: needs characters, ms or both"}},
	{"commit zero", pair + "    commit_after: {characters: 0}\n", []string{"5:20: features.default.commit_after.characters: must be a whole number from 1 to 1000000"}},
	{"repair of nothing", echo + "    repair: fence\n", []string{"5:5: features.default.repair: is for json_schema, which no target is declared to take; remove it"}},
	{"fallback", echo + "    fallback: [cache]\n", []string{"5:5: features.default.fallback: must be none, or a list of cached, queue and static"}},
	{"fallback of nothing", echo + "    fallback: []\n", []string{"5:5: features.default.fallback: must be a list in brackets with at least one entry"}},
	{"queued fallback", echo + "    fallback: queued\n", []string{"5:5: features.default.fallback: must be none, or a list of cached, queue and static"}},
	{"fallback after static", echo + "    fallback: [static, cached]\n    static_text: x\n", []string{
		"5:5: features.default.fallback: static must come last, since it always answers",
		"6:5: features.default.static_text: is never used; add static to fallback, or remove it"}},
	{"static text unused", echo + "    static_text: x\n", []string{"5:5: features.default.static_text: is never used; add static to fallback, or remove it"}},
	{"static without text", echo + "    fallback: [static]\n", []string{"5:5: features.default.fallback: static needs static_text"}},
	{"data class without rules", echo + "    data_class: secret\n", []string{
		"5:5: features.default.data_class: no data classes are declared; list them in data_rules, such as data_rules: {classes: [public, internal]}, or remove it"}},
	{"data class of nobody", ruled + "    data_class: internal\n", []string{"6:5: features.default.data_class: no target is approved for it; add it to approved_for of a provider or model"}},
	{"least data class of nobody", ruled + "    min_data_class: internal\n", []string{"6:5: features.default.min_data_class: no target is approved for it; add it to approved_for of a provider or model"}},
	{"no data class", ruled, []string{
		"4:3: features.default.data_class: is missing; where data is classified, each feature says what its requests hold that name no class: set it to one of public, internal"}},
	{"unknown data class", ruled + "    data_class: secret\n", []string{`6:5: features.default.data_class: there is no data class "secret"; known are public, internal`}},
	{"unknown least data class", ruled + "    data_class: public\n    min_data_class: secret\n", []string{`7:5: features.default.min_data_class: there is no data class "secret"; known are public, internal`}},
	{"data class below the least", ruled + "    data_class: public\n    min_data_class: internal\n", []string{
		"6:5: features.default.data_class: is less sensitive than min_data_class; set one of them alone, or raise it"}},
	{"approved for an unknown class", strings.Replace(ruled, "[public]", "[public, secret]", 1) + "    data_class: public\n", []string{
		`2:20: providers.echo.approved_for: there is no data class "secret"; known are public, internal`}},
	{"model approved for an unknown class", "data_rules: {classes: [public]}\nproviders: {echo: {approved_for: [public], models: {echo: {approved_for: [secret]}}}}\nfeatures: {default: {data_class: public, targets: [{provider: echo, model: e}]}}\n", []string{
		`2:60: providers.echo.models.echo.approved_for: there is no data class "secret"; known are public`}},
	{"rules without classes", "data_rules: {audit: true}\n" + echo, []string{"1:14: data_rules.classes: is missing; list the data classes from least to most sensitive, such as [public, internal, confidential]"}},
	{"rules that are no mapping", "data_rules: [public]\n" + echo + "    data_class: public\n", []string{"1:13: data_rules: must be a mapping of keys to values"}},
	{"class twice", "data_rules: {classes: [a, a]}\n" + echo + "    data_class: a\n", []string{"1:14: data_rules.classes: must be a list of different texts"}},
	{"name of a class", "data_rules: {classes: [Top Secret]}\n" + echo, []string{"1:14: data_rules.classes: the name of a data class must be 1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit"}},
	{"regions", echo + "    regions: [eu]\n", []string{
		"5:5: features.default.regions: echo/echo is not declared to process data there and nowhere else; set regions of the provider or model, or remove the target"}},
}

func TestRefusals(t *testing.T) {
	for _, tc := range refusals {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := config.Parse("f.yaml", []byte(tc.file))
			var problems *config.Error
			require.ErrorAs(t, err, &problems)
			var got []string
			for _, p := range problems.Problems {
				got = append(got, strings.TrimPrefix(p.String(), "f.yaml:"))
			}
			require.Equal(t, tc.want, got)
			require.NotContains(t, err.Error(), "secret@")
			require.NotContains(t, err.Error(), "sk-secret")
		})
	}
}

func TestStreamsOfTargetsThatDoNotStream(t *testing.T) {
	_, _, err := config.Parse("f.yaml", []byte(`providers: {echo: {models: {a: {streaming: false}, b: {streaming: false}}}}
features:
  default:
    targets: [{provider: echo, model: a, idle_timeout: 5s}, {provider: echo, model: b}]
`))
	require.EqualError(t, err, "f.yaml:4:42: features.default.targets[0].idle_timeout: is for streams, and the model is declared not to stream; remove it")
	_, _, err = config.Parse("f.yaml", []byte(`providers: {echo: {models: {a: {streaming: false}, b: {streaming: false}}}}
features:
  default:
    commit_after: {ms: 5}
    targets: [{provider: echo, model: a}, {provider: echo, model: b}]
`))
	require.EqualError(t, err, "f.yaml:4:5: features.default.commit_after: is for streams, and no target can stream; remove it")
}

func TestWaitAndCommitNeedAnotherCall(t *testing.T) {
	_, _, err := config.Parse("f.yaml", []byte(`providers: {echo: }
features:
  default:
    on_rate_limit: wait
    commit_after: {ms: 5}
    targets: [{provider: echo, model: a, attempts: 1}]
`))
	require.EqualError(t, err, "f.yaml:4:5: features.default.on_rate_limit: wait needs a target with attempts of 2 or more\n"+
		"f.yaml:5:5: features.default.commit_after: holds text back so that another call can take over, and there is none; add a target or attempts")
}

func FuzzParse(f *testing.F) {
	for _, tc := range refusals {
		f.Add(tc.file)
	}
	f.Add(echo)
	f.Add(pair + "    on_rate_limit: fail\n    fallback: [static]\n    static_text: \"a: #b\\n 'c'\"\n")
	f.Add(withProvider + "    {kind: openai, base_url: http://h, headers: {X-A: ' 1'}, models: {'m: x': {seed: true}, m: {price: {input: 1e3, output: .5}}}}")
	f.Fuzz(func(t *testing.T, file string) {
		cfg, parts, err := config.Parse("f.yaml", []byte(file))
		if err != nil {
			return
		}
		again, err := config.Read(parts)
		require.NoError(t, err)
		require.Equal(t, cfg, again)
	})
}
