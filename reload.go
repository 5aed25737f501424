package main

import (
	"crypto/tls"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/sip/stirshaken"
)

// reloadOn reloads the settings at each signal until ended is closed.
func (srv *server) reloadOn(signals <-chan os.Signal, ended <-chan struct{}, e *env) {
	for {
		select {
		case <-signals:
		case <-ended:
			return
		}
		notifySystemd(srv.log, daemon.SdNotifyReloading+"\n"+daemon.SdNotifyMonotonicUsec())
		if err := srv.reload(e); err != nil {
			srv.log.Error("failed to reload; the settings are unchanged", "err", err)
		} else {
			srv.log.Info("reloaded the log level and the certificates; other settings need a restart", "level", e.level.Level())
		}
		notifySystemd(srv.log, daemon.SdNotifyReady)
	}
}

// reload reads the settings again and applies the log level, certificates, keys and root certificates. If one of them
// is invalid, it applies none. Calls and open connections are not affected.
func (srv *server) reload(e *env) error {
	c, err := e.config()
	if err != nil {
		return err
	}
	c.SIPTLS.Addr = srv.config.SIPTLS.Addr // the listening address cannot change while the server runs
	pair, err := secure(c.SIPTLS)
	if err != nil {
		return err
	}
	web, err := c.HTTPTLS.Load(c.PublicURL)
	if err != nil {
		return err
	}
	if c.HTTPTLS.Enabled() != srv.config.HTTPTLS.Enabled() || c.HTTPTLS.ACME != srv.config.HTTPTLS.ACME {
		return errors.New("PARLEY_HTTP_TLS_CERT: HTTPS cannot be enabled, disabled or moved to another kind of certificate without a restart")
	}
	if err = srv.sipKeys.signer.load(c.Stir, srv.trunkReconciler.Attest); err != nil {
		return err
	}
	if err = srv.ua.SetCertificates(pair); err != nil {
		return err
	}
	srv.sipKeys.certificate.Store(pair.Certificate)
	if web != nil {
		srv.http.certificate.Store(web)
	}
	e.setLevel(c.LogLevel)
	return nil
}

// sipKeys holds the certificate and the signer of SIP that were loaded last.
type sipKeys struct {
	certificate atomic.Pointer[tls.Certificate] // nil without a certificate
	signer      liveSigner
}

// liveSigner signs calls with the key and certificate that were loaded last. It signs no calls if none are set.
type liveSigner struct {
	current atomic.Pointer[stirshaken.Signer]
}

// load reads the files of s. On an error it keeps the current key and certificate.
func (l *liveSigner) load(s config.Stir, attest func(from string) string) error {
	fresh, err := signer(s, attest, time.Now())
	if err == nil {
		l.current.Store(fresh)
	}
	return err
}

// Sign implements sip.Signer.
func (l *liveSigner) Sign(from, to string, at time.Time) (string, error) {
	s := l.current.Load()
	if s == nil {
		return "", nil
	}
	return s.Sign(from, to, at)
}
