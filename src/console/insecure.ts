import { AnnalsError } from '../core/errors.ts';

/** For every way to sign in over plain HTTP beyond loopback. */
export function insecureSignIn(): AnnalsError {
  return new AnnalsError(
    'insufficient_permissions',
    'Signing in over plain HTTP is refused: others in the network could take over the session. Serve the console over ' +
      'HTTPS, or allow it with ANNALS_CONSOLE_INSECURE=true.',
  );
}
