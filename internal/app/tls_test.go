package app_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/natstest"
)

// authority signs certificates of a test.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	file string // PEM of the authority itself
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir(), pool: x509.NewCertPool()}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert, a.key = sign(t, template, nil, nil)
	a.pool.AddCert(a.cert)
	a.file = write(t, a.dir, "ca.pem", "CERTIFICATE", a.cert.Raw)
	return a
}

// issue makes a certificate and its key, as files.
func (a *authority) issue(t *testing.T, name string, usage x509.ExtKeyUsage) (cert, key string) {
	t.Helper()
	c, k := sign(t, &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{usage}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, a.cert, a.key)
	der, err := x509.MarshalECPrivateKey(k)
	require.NoError(t, err)
	return write(t, a.dir, name+".pem", "CERTIFICATE", c.Raw), write(t, a.dir, name+"-key.pem", "EC PRIVATE KEY", der)
}

// sign makes a certificate; without a parent it signs itself.
func sign(t *testing.T, template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert, key
}

func write(t *testing.T, dir, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

// nkey writes a seed file and returns its public key.
func nkey(t *testing.T) (file, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	require.NoError(t, err)
	seed, err := pair.Seed()
	require.NoError(t, err)
	public, err = pair.PublicKey()
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "user.nk")
	require.NoError(t, os.WriteFile(file, seed, 0o600))
	return file, public
}

// TestTLS has a server that shows a certificate, demands one, and lets in one
// nkey alone.
func TestTLS(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	serverCert, serverKey := ours.issue(t, "server", x509.ExtKeyUsageServerAuth)
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	require.NoError(t, err)
	seed, public := nkey(t)
	srv := natstest.ListenServer(t, func(o *server.Options) {
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: ours.pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
		o.TLSTimeout = 5
		o.Nkeys = []*server.NkeyUser{{Nkey: public}}
	})
	cert, key := ours.issue(t, "worker", x509.ExtKeyUsageClientAuth)
	foreignCert, foreignKey := theirs.issue(t, "worker", x509.ExtKeyUsageClientAuth)
	otherSeed, _ := nkey(t)
	proper := func() *app.Environment {
		env := joining(srv)
		env.NatsTLSCa, env.NatsTLSCert, env.NatsTLSKey, env.NatsNkey = ours.file, cert, key, seed
		return env
	}

	start(t, proper(), echoConfig).ended(t)
	for name, tc := range map[string]struct {
		change func(*app.Environment)
		says   string // in the log, or as the reason of the end
	}{
		"another authority":                {func(e *app.Environment) { e.NatsTLSCa = theirs.file }, "certificate signed by unknown authority"},
		"the system's authorities":         {func(e *app.Environment) { e.NatsTLSCa = "" }, "certificate signed by unknown authority"},
		"no certificate":                   {func(e *app.Environment) { e.NatsTLSCert, e.NatsTLSKey = "", "" }, "cannot be reached"},
		"a certificate of somebody else's": {func(e *app.Environment) { e.NatsTLSCert, e.NatsTLSKey = foreignCert, foreignKey }, "cannot be reached"},
		"another nkey":                     {func(e *app.Environment) { e.NatsNkey = otherSeed }, "uthorization"},
		"no login":                         {func(e *app.Environment) { e.NatsNkey = "" }, "uthorization"},
	} {
		t.Run(name, func(t *testing.T) {
			env := proper()
			tc.change(env)
			p := launch(t, env, echoConfig)
			require.Eventually(t, func() bool {
				select {
				case err := <-p.end:
					require.Error(t, err)
					p.end <- err
					return true
				default:
					return strings.Contains(p.log.String(), tc.says)
				}
			}, patience, tick)
			select {
			case <-p.ready:
				require.Fail(t, "the worker was let in")
			default:
			}
		})
	}
}
