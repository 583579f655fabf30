import { ApiError } from '@annals/client';
import { useEffect, useState } from 'preact/hooks';
import { type Credentials, readSession, sessionEnded, signIn, signsInPeople } from '../api/session.ts';
import { Brand } from '../app/shell.tsx';
import { Button } from '../components/buttons.tsx';
import { TextField } from '../components/forms.tsx';
import { FailureBox } from '../components/states.tsx';
import { basePath } from '../router/router.tsx';
import './sign-in-page.css';

/**
 * Asks for a client and its secret, or redeems the link of the address. The address stays, so the requested view
 * follows.
 */
export function SignInPage({ link }: { readonly link: string | undefined }) {
  const [clientId, setClientId] = useState('');
  const [clientSecret, setClientSecret] = useState('');
  const [error, setError] = useState<unknown>(undefined);
  const [isBusy, setBusy] = useState(link !== undefined);
  const [refusedBefore] = useState(takeRefusal);

  const enter = (credentials: Exclude<Credentials, { tenant: string }>) => {
    setBusy(true);
    setError(undefined);
    signIn(credentials).catch(async (refusal: unknown) => {
      // A browser that is signed in stays so if a used link is opened in it.
      if ('link' in credentials) await readSession().catch(() => {});
      setError(refusal);
      setBusy(false);
    });
  };
  // A link is good once.
  useEffect(() => {
    document.title = 'Sign in · Annals';
    if (link !== undefined) enter({ link });
  }, []);

  return (
    <main class="sign-in">
      <form
        class="sign-in-card"
        onSubmit={(event) => {
          event.preventDefault();
          enter({ clientId: clientId.trim(), clientSecret });
        }}
      >
        <Brand />
        <h1>Sign in</h1>
        {sessionEnded.value && error === undefined ? (
          <p class="sign-in-note">Your session has ended. Sign in to continue where you were.</p>
        ) : undefined}
        {refusedBefore === undefined || error !== undefined ? undefined : (
          <p class="sign-in-refusal" role="alert">
            {refusedBefore}
          </p>
        )}
        {signsInPeople ? (
          <>
            <a class="button primary" href={companyAddress()}>
              Sign in with your company's account
            </a>
            <p class="sign-in-or">or with a client</p>
          </>
        ) : undefined}
        {error === undefined ? undefined : <Refusal error={error} byLink={link !== undefined} />}
        <TextField
          label="Client id"
          input={{
            name: 'username',
            autocomplete: 'username',
            autocapitalize: 'none',
            spellcheck: false,
            required: true,
          }}
          value={clientId}
          onText={setClientId}
        />
        <TextField
          label="Client secret"
          input={{ name: 'password', type: 'password', autocomplete: 'current-password', required: true }}
          value={clientSecret}
          onText={setClientSecret}
        />
        <Button kind={signsInPeople ? 'plain' : 'primary'} type="submit" disabled={isBusy}>
          {isBusy ? 'Signing in …' : 'Sign in'}
        </Button>
        <p class="sign-in-hint">
          You have no client? An operator can make a link that signs you in once:
          <code>annals console link --tenant NAME</code>
        </p>
      </form>
    </main>
  );
}

/** To the provider, and back to the requested view. */
function companyAddress(): string {
  const to = `${location.pathname}${location.search}`.slice(basePath.length);
  return `${basePath}oidc?${new URLSearchParams({ to })}`;
}

function Refusal({ error, byLink }: { readonly error: unknown; readonly byLink: boolean }) {
  if (!(error instanceof ApiError) || error.status !== 401) return <FailureBox error={error} />;
  return (
    <p class="sign-in-refusal" role="alert">
      {byLink
        ? 'This link no longer works. A link works once, and only for a short time. Ask for another one, or sign in with a client.'
        : 'The client id or the secret is wrong, or the client was revoked.'}
    </p>
  );
}

const words: Readonly<Record<string, string>> = {
  not_admitted: 'Your account was recognised, but it is not admitted. Ask those who run Annals.',
  groups_left_out:
    "You are in so many groups that your company's provider did not name them. Ask those who run Annals to let you in by a role or your address.",
  declined:
    "You did not sign in at your company's provider, or it does not let you use Annals. Try it again, or ask those who run Annals.",
  other_person:
    'Another account signed in than the one that allowed the program. Nothing was allowed: start again in the program.',
  too_many: 'Too many sign-ins failed from your address. Try it again in a minute.',
  expired: 'The sign-in took too long, or began in another browser. Try it again.',
  provider: "Your company's provider could not be reached, or its answer was refused. Try it again later.",
};

/**
 * Takes why a sign-in with a company's account was refused from the address, and removes it there. Undefined where it
 * was not.
 */
export function takeRefusal(): string | undefined {
  const parameters = new URLSearchParams(location.search);
  const reason = parameters.get('refused');
  if (reason === null) return undefined;
  parameters.delete('refused');
  const rest = parameters.size === 0 ? '' : `?${parameters}`;
  history.replaceState(null, '', `${location.pathname}${rest}`);
  return words[reason] ?? words.provider;
}
