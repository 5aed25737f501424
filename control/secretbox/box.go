package secretbox

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/parley-voice/parley/media"
)

// Box encrypts and decrypts secrets for the connections of a pool. Writing or reading a secret fails until Load or
// SetKeys has set the keys.
type Box struct{ keys atomic.Pointer[Keys] }

// SetKeys sets the keys.
func (b *Box) SetKeys(k Keys) { b.keys.Store(&k) }

var errNoKeys = errors.New("secret used before the keys were loaded")

func (b *Box) open() (Keys, error) {
	if k := b.keys.Load(); k != nil {
		return *k, nil
	}
	return nil, errNoKeys
}

// Prepare makes a connection encrypt each media.Secret that it writes, and decrypt each media.Secret that it reads. Use
// it as db.Config.Prepare.
func (b *Box) Prepare(_ context.Context, conn *pgx.Conn) error {
	m := conn.TypeMap()
	m.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{b.wrapEncode}, m.TryWrapEncodePlanFuncs...)
	m.TryWrapScanPlanFuncs = append([]pgtype.TryWrapScanPlanFunc{b.wrapScan}, m.TryWrapScanPlanFuncs...)
	return nil
}

func (b *Box) wrapEncode(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	if _, ok := value.(media.Secret); !ok {
		return nil, nil, false
	}
	return &sealPlan{box: b}, "", true
}

func (b *Box) wrapScan(target any) (pgtype.WrappedScanPlanNextSetter, any, bool) {
	if _, ok := target.(*media.Secret); !ok {
		return nil, nil, false
	}
	return &openPlan{box: b}, new(string), true
}

type sealPlan struct {
	box  *Box
	next pgtype.EncodePlan
}

// SetNext implements pgtype.WrappedEncodePlanNextSetter.
func (s *sealPlan) SetNext(next pgtype.EncodePlan) { s.next = next }

// Encode implements pgtype.EncodePlan.
func (s *sealPlan) Encode(value any, buf []byte) ([]byte, error) {
	keys, err := s.box.open()
	if err != nil {
		return nil, err
	}
	plain, ok := value.(media.Secret)
	if !ok {
		return nil, errors.New("expected a secret, got " + reflect.TypeOf(value).String())
	}
	text, err := keys.Seal(plain)
	if err != nil {
		return nil, err
	}
	return s.next.Encode(text, buf)
}

type openPlan struct {
	box  *Box
	next pgtype.ScanPlan
}

// SetNext implements pgtype.WrappedScanPlanNextSetter.
func (o *openPlan) SetNext(next pgtype.ScanPlan) { o.next = next }

// Scan implements pgtype.ScanPlan.
func (o *openPlan) Scan(src []byte, target any) error {
	keys, err := o.box.open()
	if err != nil {
		return err
	}
	to, ok := target.(*media.Secret)
	if !ok {
		return errors.New("expected a secret, got " + reflect.TypeOf(target).String())
	}
	var text string
	if err = o.next.Scan(src, &text); err != nil {
		return err
	}
	*to, err = keys.Open(text)
	return err
}
