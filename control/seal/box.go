package seal

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/parley-voice/parley/media"
)

// A Box seals and opens for the connections of a pool. Until it has keys,
// secrets can neither be written nor read.
type Box struct{ keys atomic.Pointer[Keys] }

// Use gives the box its keys.
func (b *Box) Use(k Keys) { b.keys.Store(&k) }

var errShut = errors.New("a secret is written or read before there are keys")

func (b *Box) open() (Keys, error) {
	if k := b.keys.Load(); k != nil {
		return *k, nil
	}
	return nil, errShut
}

// Prepare has a connection seal every media.Secret that it is given, and open
// every one that it reads. It is for db.Config.
func (b *Box) Prepare(_ context.Context, conn *pgx.Conn) error {
	m := conn.TypeMap()
	m.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{b.sealing}, m.TryWrapEncodePlanFuncs...)
	m.TryWrapScanPlanFuncs = append([]pgtype.TryWrapScanPlanFunc{b.opening}, m.TryWrapScanPlanFuncs...)
	return nil
}

func (b *Box) sealing(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	if _, ok := value.(media.Secret); !ok {
		return nil, nil, false
	}
	return &sealed{box: b}, "", true
}

func (b *Box) opening(target any) (pgtype.WrappedScanPlanNextSetter, any, bool) {
	if _, ok := target.(*media.Secret); !ok {
		return nil, nil, false
	}
	return &opened{box: b}, new(string), true
}

// sealed writes a secret as the text that it is sealed to.
type sealed struct {
	box  *Box
	next pgtype.EncodePlan
}

// SetNext implements pgtype.WrappedEncodePlanNextSetter.
func (s *sealed) SetNext(next pgtype.EncodePlan) { s.next = next }

// Encode implements pgtype.EncodePlan.
func (s *sealed) Encode(value any, buf []byte) ([]byte, error) {
	keys, err := s.box.open()
	if err != nil {
		return nil, err
	}
	plain, ok := value.(media.Secret)
	if !ok {
		return nil, errors.New("no secret, but " + reflect.TypeOf(value).String())
	}
	text, err := keys.Seal(plain)
	if err != nil {
		return nil, err
	}
	return s.next.Encode(text, buf)
}

// opened reads a secret.
type opened struct {
	box  *Box
	next pgtype.ScanPlan
}

// SetNext implements pgtype.WrappedScanPlanNextSetter.
func (o *opened) SetNext(next pgtype.ScanPlan) { o.next = next }

// Scan implements pgtype.ScanPlan.
func (o *opened) Scan(src []byte, target any) error {
	keys, err := o.box.open()
	if err != nil {
		return err
	}
	to, ok := target.(*media.Secret)
	if !ok {
		return errors.New("no secret, but " + reflect.TypeOf(target).String())
	}
	var text string
	if err = o.next.Scan(src, &text); err != nil {
		return err
	}
	*to, err = keys.Open(text)
	return err
}
