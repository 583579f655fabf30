/** The two faults a token can have, in the words that clients match (contract: authentication). */
const faults = {
  invalid: { faultstring: 'Invalid access token', errorcode: 'oauth.v2.InvalidAccessToken' },
  expired: { faultstring: 'Access Token expired', errorcode: 'keymanagement.service.access_token_expired' },
} as const;

/** A request has no valid access token. Its answer is 401 with the fault object. */
export class AccessTokenFault extends Error {
  readonly body: { fault: { faultstring: string; detail: { errorcode: string } } };

  constructor(reason: keyof typeof faults) {
    const { faultstring, errorcode } = faults[reason];
    super(faultstring);
    this.name = 'AccessTokenFault';
    this.body = { fault: { faultstring, detail: { errorcode } } };
  }
}
