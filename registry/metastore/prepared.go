package metastore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
)

// preparing is a driver.Connector whose connections keep the statements with arguments prepared: SQLite spends as long on
// reading a query as on answering it. The queries of this package are constants, so their number is bounded. A statement
// is not run again before the rows of its last run are closed, which the helpers of tx see to.
type preparing struct{ driver.Connector }

func (p preparing) Connect(ctx context.Context) (driver.Conn, error) {
	plain, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn, ok := plain.(fullConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's connection %T lacks a method that is needed", plain), plain.Close())
	}
	return &preparedConn{fullConn: conn, statements: map[string]fullStatement{}}, nil
}

// fullConn is everything that database/sql asks of a connection.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// fullStatement is a prepared statement that takes a context.
type fullStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type preparedConn struct {
	fullConn
	statements map[string]fullStatement
}

// prepared is the statement of the query, nil when it isn't worth keeping.
func (c *preparedConn) prepared(ctx context.Context, query string, args []driver.NamedValue) (fullStatement, error) {
	if s := c.statements[query]; s != nil || len(args) == 0 {
		return s, nil
	}
	plain, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s, ok := plain.(fullStatement)
	if !ok {
		return nil, plain.Close()
	}
	c.statements[query] = s
	return s, nil
}

func (c *preparedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.prepared(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.fullConn.ExecContext(ctx, query, args)
	}
	return s.ExecContext(ctx, args)
}

func (c *preparedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.prepared(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.fullConn.QueryContext(ctx, query, args)
	}
	return s.QueryContext(ctx, args)
}

func (c *preparedConn) Close() error {
	var errs []error
	for _, s := range c.statements {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.fullConn.Close())...)
}
