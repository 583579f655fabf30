import { useEffect, useState } from 'preact/hooks';
import { isAborted } from '../api/failure.ts';
import { readSession, session } from '../api/session.ts';
import { FailureBox, later } from '../components/states.tsx';
import { Toasts } from '../components/toasts.tsx';
import { Shell } from './shell.tsx';

/** Most who open the console are signed in. */
const SignInPage = later(async () => (await import('../session/sign-in-page.tsx')).SignInPage);

type Start =
  | { readonly step: 'asking' }
  | { readonly step: 'ready' }
  | { readonly step: 'failed'; readonly error: unknown };

/** The whole page: the one who signs in, or the shell of those who have. */
export function App() {
  const [start, setStart] = useState<Start>({ step: 'asking' });
  const [link] = useState(takeLink);

  const ask = () => {
    setStart({ step: 'asking' });
    readSession().then(
      () => setStart({ step: 'ready' }),
      (error: unknown) => setStart(isAborted(error) ? { step: 'ready' } : { step: 'failed', error }),
    );
  };
  // Asked once. A link is redeemed by the sign-in page.
  useEffect(() => (link === undefined ? ask() : setStart({ step: 'ready' })), []);

  if (start.step === 'failed') {
    return (
      <main class="start-failed">
        <FailureBox error={start.error} onRetry={ask} />
      </main>
    );
  }
  return (
    <>
      {start.step === 'asking' ? undefined : session.value === undefined ? <SignInPage link={link} /> : <Shell />}
      <Toasts />
    </>
  );
}

/**
 * Takes the text of a sign-in link from the address and removes it there, so that nobody reads it over a shoulder or in the
 * browser's history. Undefined where there is none.
 */
function takeLink(): string | undefined {
  const [, link] = /^#link=(.+)$/.exec(location.hash) ?? [];
  if (link !== undefined) history.replaceState(null, '', location.pathname + location.search);
  return link;
}
