package fence

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/internal/sim/simtest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// operator signs accounts, which the server knows by their JWTs alone.
type operator struct {
	key      nkeys.KeyPair
	claims   *jwt.OperatorClaims
	resolver *server.MemAccResolver
}

// account is one that signs its users.
type account struct {
	nkeys.KeyPair
	*jwt.AccountClaims
}

func pair(t *testing.T, kind nkeys.PrefixByte) (nkeys.KeyPair, string) {
	t.Helper()
	key, err := nkeys.CreatePair(kind)
	require.NoError(t, err)
	public, err := key.PublicKey()
	require.NoError(t, err)
	return key, public
}

func newOperator(t *testing.T) *operator {
	key, public := pair(t, nkeys.PrefixByteOperator)
	return &operator{key: key, claims: jwt.NewOperatorClaims(public), resolver: &server.MemAccResolver{}}
}

func newAccount(t *testing.T, name string) *account {
	key, public := pair(t, nkeys.PrefixByteAccount)
	a := &account{key, jwt.NewAccountClaims(public)}
	a.Name = name
	return a
}

// publish makes the account known to the server.
func (o *operator) publish(t *testing.T, a *account) {
	t.Helper()
	token, err := a.Encode(o.key)
	require.NoError(t, err)
	require.NoError(t, o.resolver.Store(a.Subject, token))
}

// role makes a key whose users have these permissions. They are in the account's
// JWT: that of a user goes into one line of the protocol, where the list of a
// worker has no room.
func (a *account) role(t *testing.T, name string, p *server.Permissions) nkeys.KeyPair {
	t.Helper()
	key, public := pair(t, nkeys.PrefixByteAccount)
	scope := jwt.NewUserScope()
	scope.Key, scope.Role = public, name
	scope.Template.Pub.Allow, scope.Template.Sub.Allow = p.Publish.Allow, p.Subscribe.Allow
	a.SigningKeys.AddScopedSigner(scope)
	return key
}

// user writes a credentials file, signed by the account or, if there is one, by
// the key of a role.
func (a *account) user(t *testing.T, name string, role nkeys.KeyPair) string {
	t.Helper()
	key, public := pair(t, nkeys.PrefixByteUser)
	claims, signer := jwt.NewUserClaims(public), a.KeyPair
	claims.Name = name
	if role != nil {
		signer, claims.IssuerAccount, claims.UserPermissionLimits = role, a.Subject, jwt.UserPermissionLimits{}
	}
	token, err := claims.Encode(signer)
	require.NoError(t, err)
	seed, err := key.Seed()
	require.NoError(t, err)
	creds, err := jwt.FormatUserConfig(token, seed)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name+".creds")
	require.NoError(t, os.WriteFile(path, creds, 0o600))
	return path
}

// accountsOf makes the accounts of accounts.conf of JWTs: what the file says of
// ACME's imports is said here of the account's public key.
func accountsOf(t *testing.T, o *operator) (workers *account, tenants map[string]*account) {
	t.Helper()
	workers, tenants = newAccount(t, "LLM"), map[string]*account{}
	workers.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	for _, e := range exports {
		export := &jwt.Export{Name: e.subject, Subject: jwt.Subject(e.subject), Type: jwt.Stream, AccountTokenPosition: uint(e.position)}
		if e.service {
			export.Type, export.ResponseType = jwt.Service, jwt.ResponseTypeSingleton
		}
		if e.many {
			export.ResponseType, export.ResponseThreshold = jwt.ResponseTypeStream, 11*time.Minute
		}
		workers.Exports.Add(export)
	}
	for _, user := range []string{"acme", "globex"} {
		a := newAccount(t, strings.ToUpper(user))
		for _, e := range exports {
			a.imports(workers.Subject, a.Subject, e)
		}
		o.publish(t, a)
		tenants[user] = a
	}
	return workers, tenants
}

// imports adds one import, with a tenant where the export wants the account.
func (a *account) imports(from, tenant string, e export) {
	tokens := strings.Split(e.subject, ".")
	local := append(append([]string{}, tokens[:e.position-1]...), tokens[e.position:]...)
	tokens[e.position-1] = tenant
	i := &jwt.Import{Name: e.subject, Account: from, Subject: jwt.Subject(strings.Join(tokens, ".")), LocalSubject: jwt.RenamingSubject(strings.Join(local, ".")), Type: jwt.Stream}
	if e.service {
		i.Type = jwt.Service
	}
	a.Imports.Add(i)
}

// export is what the workers' account offers, as docs/security.md has it.
type export struct {
	subject       string
	position      int
	service, many bool
}

var exports = []export{
	{"llm.complete.*.*", 4, true, true}, {"llm.resume.*.*", 4, true, true}, {"llm.cancel.*.*", 4, true, false}, {"llm.jobs.*.*", 4, true, false},
	{"$JS.API.DIRECT.GET.LLM_RESULTS.llm.results.*.*", 8, true, false}, {"$JS.API.DIRECT.GET.LLM_DEAD.llm.dead.*.*.*", 9, true, false},
	{"llm.stream.*.*", 3, false, false}, {"llm.results.*.*", 3, false, false}, {"llm.dead.*.*.*", 4, false, false},
}

// TestAccountsWithJWTs does everything with accounts that are known by JWTs, and
// a worker with a credentials file.
func TestAccountsWithJWTs(t *testing.T) {
	o := newOperator(t)
	workers, tenants := accountsOf(t, o)
	system := newAccount(t, "SYS")
	o.publish(t, system)
	token, err := o.claims.Encode(o.key)
	require.NoError(t, err)
	o.claims, err = jwt.DecodeOperatorClaims(token)
	require.NoError(t, err)
	s := &site{form: forms[0], sim: simtest.Start(t), creds: map[string]string{}, names: map[string]string{}}
	s.Listener = natstest.ListenServer(t, func(opts *server.Options) {
		opts.TrustedOperators, opts.AccountResolver, opts.SystemAccount = []*jwt.OperatorClaims{o.claims}, o.resolver, system.Subject
	})
	s.options = load(t, filepath.Join(folder, "accounts.conf"))
	s.creds["worker"] = workers.user(t, "worker", workers.role(t, "worker", s.permissions(t, "worker")))
	s.creds["operator"] = workers.user(t, "operator", nil)
	o.publish(t, workers)
	for user, a := range tenants {
		s.creds[user], s.names[user] = a.user(t, user, nil), a.Subject
	}
	var log lines
	s.work(t, 2, &log)
	newDuties(t, s).all(t)
	require.NotContains(t, log.String(), "ermissions")

	// Another tenant's results are out of reach, and so is an import of them.
	acme, globex := s.client(t, s.dial(t, "acme"), "acme"), s.dial(t, "globex")
	job, err := acme.Submit(t.Context(), question("default", "hello"))
	require.NoError(t, err)
	_, err = acme.Result(t.Context(), job)
	require.NoError(t, err)
	for _, tenant := range []string{"", s.names["acme"]} {
		msg, err := globex.RequestWithContext(t.Context(), subjects.StoredResult(tenant, job.ID), nil)
		require.True(t, err != nil || refusal(msg))
	}
	thief := newAccount(t, "THIEF")
	for _, e := range exports {
		thief.imports(workers.Subject, s.names["acme"], e)
	}
	o.publish(t, thief)
	s.creds["thief"], s.names["thief"] = thief.user(t, "thief", nil), thief.Subject
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = s.client(t, s.dial(t, "thief"), "thief").Complete(ctx, question("default", "hello"))
	require.ErrorIs(t, err, llm.ErrUnavailable, "the server does not honour an import in another's name")
}
