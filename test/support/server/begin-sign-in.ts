import { createIdentityProvider } from '../../../src/access/sign-in/provider.ts';

// Prints where a sign-in at the issuer begins, or why it cannot.
const [issuer = ''] = process.argv.slice(2);
const provider = createIdentityProvider({
  issuer,
  clientId: 'annals',
  clientSecret: 'secret',
  scopes: [],
  lacksClaims: () => false,
  callback: 'https://annals.example/console/oidc/callback',
  afterSignOut: 'https://annals.example/console/',
  now: () => Date.now(),
});
try {
  console.log((await provider.begin()).url.href);
} catch (error) {
  console.log((error as Error).message);
}
