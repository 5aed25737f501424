package db

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// Away tells an error of a database that cannot be reached, stops, starts, is
// full, or takes too long, from one that any database would have answered.
func Away(err error) bool {
	if lost, ok := errors.AsType[net.Error](err); ok && lost != nil {
		return true
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch refusal.Code[:min(2, len(refusal.Code))] {
		case "08", "53", "57": // connection, resources, intervention
			return true
		}
		return false
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF)
}
