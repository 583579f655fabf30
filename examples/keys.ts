// Checks an access token with the service's published keys: GET /.well-known/jwks.json. Run it with: node examples/keys.ts
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { getToken, setting } from './token.ts';

const keys = createRemoteJWKSet(new URL(`${setting('ANNALS_URL')}/.well-known/jwks.json`));
const { payload, protectedHeader } = await jwtVerify(await getToken(), keys);

console.log(protectedHeader);
console.log(payload);
