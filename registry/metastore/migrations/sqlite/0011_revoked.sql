-- What was revoked is never enabled again, whoever writes: a replica of an older program knows of no revocations.

-- +goose Up
UPDATE versions SET enabled = 0 WHERE revoked_at <> 0;
-- +goose StatementBegin
CREATE TRIGGER versions_revoked BEFORE UPDATE OF enabled ON versions WHEN NEW.revoked_at <> 0 AND NEW.enabled <> 0
BEGIN
    SELECT RAISE(ABORT, 'a version that was revoked is not enabled again');
END;
-- +goose StatementEnd
