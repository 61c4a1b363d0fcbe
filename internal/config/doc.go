// Package config reads what a fleet is told to do: breaker defaults, limits of
// tenants, providers and features, from a YAML file or from the llm_features bucket.
//
// A configuration is made of parts, each of which is one key of the bucket and
// one entry of the file:
//
//	breaker            defaults for every breaker
//	data_rules         the data classes there are
//	limits             what tenants may use
//	provider.<name>    one entry of providers
//	feature.<name>     one entry of features
//
// Every setting is read by hand from the syntax tree, so that an unknown key, a
// value out of bounds or a setting that cannot apply is reported with its line
// and column, its path and the remedy, all of them at once. Absent, zero and
// off are three different things: absent takes the default, zero is refused
// where it has no meaning, and off is the word "off". Keys of providers are
// never part of a configuration, only the names of what holds them.
//
//	breaker:                     # every field is optional
//	  threshold: 5               # failures of the whole fleet within window that open: 1 to 1000
//	  window: 30s                # 1s to 1h
//	  cool_down: 10s             # from opening to the first probe: 100ms to 24h
//	  max_cool_down: 5m          # what repeated failure makes of it: cool_down to 24h
//	  probe_timeout: 30s         # 100ms to 10m
//	  ramp: off                  # after closing, calls come back by steps over this time, up to 1h
//	  scope: model               # or provider: one breaker for all its models
//
//	data_rules:                  # optional; without it no class may be named anywhere
//	  classes: [public, internal, confidential]   # from least to most sensitive
//	  audit: true                # record how each request was routed
//
//	limits:
//	  default:                   # of every tenant that is not named; a fleet with one tenant is under it, too
//	    requests_per_minute: 600 # also per hour and per day; 1 or more
//	    tokens_per_minute: 200_000         # prompts and answers; also per hour and per day
//	    usd_per_day: 20          # also per minute and per hour; days are those of UTC
//	    concurrent: 50           # requests at once
//	  tenants:
//	    acme: {requests_per_minute: 6000, concurrent: off}   # what differs from the default
//
//	providers:
//	  openai:                    # a name of a-z, 0-9, _ and -
//	    kind: openai             # openai, anthropic, ollama, gemini or echo; the name, if it is one of them
//	    base_url: https://api.openai.com   # the kind's own by default
//	    api_key_env: OPENAI_API_KEY        # default for the kind's own base_url
//	    api_key_file: /run/secrets/openai  # instead; the first line is the key
//	    headers: {X-Title: demo}           # sent with every call
//	    connect_timeout: 5s                # 10ms to 1m
//	    breaker: {threshold: 3}            # what differs from the defaults above
//	    regions: [eu]                      # where it processes data, for features that demand it
//	    approved_for: [public, internal]   # data classes that may be sent there
//	    models:                            # what differs from the kind's defaults
//	      gpt-5-mini:
//	        tools: true          # also tool_choice, vision, image_urls, json_schema, streaming, seed
//	        context_window: 400000         # tokens
//	        max_output_tokens: 128000      # tokens
//	        regions: [us]                  # instead of the provider's; approved_for likewise
//	        price: {input: 0.25, cached_input: 0.025, output: 2}   # US dollars per million tokens; see pricelists.go
//
// Kind openai also takes api (chat or responses), family (openai, compatible or
// mistral), azure, organization, project, max_tokens_field and stream_usage;
// kind anthropic takes version, betas and default_max_tokens; kind ollama takes
// context_tokens and keep_alive; kind gemini takes models_path. What a model can do and nobody declared, it
// cannot do; the defaults of a kind are those of its adapter.
//
//	features:
//	  support:                   # a name of a-z, 0-9, _ and -, at most 64
//	    class: interactive       # or background, structured
//	    data_class: internal     # of requests that name none; required, this or the next, with data_rules
//	    min_data_class: internal # requests of a lower class are raised to it
//	    regions: [eu]            # every target must process data there and nowhere else
//	    limits: {default: {requests_per_minute: 60}}   # of each tenant on this feature, besides; as limits above
//	    timeout: 30s             # of a request, whatever its caller asks: 100ms to 1h
//	    targets:                 # in order of preference
//	      - provider: openai
//	        model: gpt-5-mini
//	        attempts: 1          # calls for one request: 1 to 10
//	        timeout: 20s         # of one call; default a fair share of what remains
//	        first_token_timeout: 10s       # of a stream, or off
//	        idle_timeout: 15s              # of a stream, or off
//	    on_rate_limit: fail_over           # or wait, fail
//	    on_quota: fail_over                # or fail
//	    on_misconfigured: fail             # or fail_over
//	    on_refusal: fail                   # or fail_over
//	    on_invalid_output: fail_over       # or fail
//	    on_interrupt: error                # or restart: a stream begins again on another target; queue: a job takes over
//	    commit_after: {characters: 80, ms: 500}   # hold back a stream's first text so long
//	    repair: fence                      # or none
//	    fallback: [cached, queue, static]  # or none; queue: a job takes over
//	    static_text: Please try again later.
//	    jobs:                              # background jobs of the feature
//	      timeout: 5m                      # of one try; by default at least the feature's timeout
//	      backoff: [5s, 15s, 45s, 120s]    # waits between tries, of which there is one more
//
// Defaults by class:
//
//	class        timeout  first token  idle  on_rate_limit
//	interactive  30s      10s          15s   fail_over
//	structured   60s      20s          20s   fail_over
//	background   5m       60s          60s   wait
//
// attempts defaults to 2 where the feature has a single target or waits on rate
// limits, and to 1 otherwise.
//
// # The bucket
//
// Push writes the parts that differ and removes those that are gone. A worker
// that was started with a file applies it if the file differs from the one that
// was applied last, whose digest is kept under the key applied_file; otherwise
// the bucket stands, so that a pushed configuration survives a restart. A worker
// without a file and with an empty bucket takes Default, which it does not store.
//
// Workers follow the bucket. A part that is refused is reported and its previous
// text stays in force; see Adopt.
package config
