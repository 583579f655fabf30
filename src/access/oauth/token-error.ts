/** The errors of the token endpoint (RFC 6749, 5.2) that this service gives. */
export type TokenErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'invalid_target';

/** `description` is for the client's developer: printable ASCII without quotes and backslashes, as the RFC requires. */
export class TokenError extends Error {
  readonly code: TokenErrorCode;

  constructor(code: TokenErrorCode, description: string) {
    super(description);
    this.name = 'TokenError';
    this.code = code;
  }

  get status(): number {
    return this.code === 'invalid_client' ? 401 : 400;
  }

  get body(): { error: TokenErrorCode; error_description: string } {
    return { error: this.code, error_description: this.message };
  }
}
