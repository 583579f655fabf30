import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { askAtOnce, lostAt } from './api/connection.ts';
import { isAborted } from './api/failure.ts';
import { onceReached } from './api/requests.ts';
import { readSession, session } from './api/session.ts';
import { Shell } from './app/shell.tsx';
import { Button } from './components/buttons.tsx';
import { FailureBox, later } from './components/states.tsx';
import { closeToast, toasts } from './components/toasts.ts';
import { Time } from './components/values.tsx';
import { path, place } from './router/router.tsx';
import '../../docs/site/tokens.css';
import './design/base.css';
import './components/layout.css';
import './components/forms.css';
import './components/buttons.css';
import './components/tables.css';
import './components/states.css';
import './components/values.css';
import './components/overlays.css';

/** Most who open the console are signed in. */
const SignInPage = later(async () => (await import('./session/sign-in-page.tsx')).SignInPage);

const AuthorizePage = later(async () => (await import('./session/authorize-page.tsx')).AuthorizePage);
const AuthorizeFault = later(async () => (await import('./session/authorize-page.tsx')).AuthorizeFault);

type Start =
  | { readonly step: 'asking' }
  | { readonly step: 'ready' }
  | { readonly step: 'failed'; readonly error: unknown };

/** The whole page: the sign-in page, or the shell of those who have signed in. */
function App() {
  const [start, setStart] = useState<Start>({ step: 'asking' });
  const [link] = useState(takeLink);

  const ask = () => {
    setStart({ step: 'asking' });
    onceReached(readSession).then(
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
      {start.step === 'asking' ? undefined : <Content link={link} />}
      <Toasts />
      <OfflineLine />
    </>
  );
}

/** A program's request is shown alone, without the navigation, so that the person decides about it. */
function Content({ link }: { readonly link: string | undefined }) {
  const isAuthorize = path.value === 'authorize';
  const fault = isAuthorize ? place.value.parameters.get('fault') : null;
  if (fault !== null) return <AuthorizeFault fault={fault} />;
  if (session.value === undefined) return <SignInPage link={link} />;
  return isAuthorize ? <AuthorizePage /> : <Shell />;
}

/** The one place that says that the service is away. What is shown stays, and loads by itself once it is back. */
function OfflineLine() {
  const at = lostAt.value;
  return (
    <div class={at === undefined ? '' : 'offline-line'} role="status">
      {at === undefined ? undefined : (
        <>
          <span>
            The service cannot be reached since <Time at={at} detail="clock" />. This page continues once it is back.
          </span>
          <Button kind="quiet" onClick={askAtOnce}>
            Try now
          </Button>
        </>
      )}
    </div>
  );
}

/** Takes a sign-in link's secret from the address and removes it there and in the browser's history. */
function takeLink(): string | undefined {
  const [, link] = /^#link=(.+)$/.exec(location.hash) ?? [];
  if (link !== undefined) history.replaceState(null, '', location.pathname + location.search);
  return link;
}

function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map(({ id, text, isError }) => (
        <div key={id} class={`toast${isError ? ' error' : ''}`}>
          <span>{text}</span>
          <Button kind="quiet" icon="close" aria-label="Close the message" onClick={() => closeToast(id)} />
        </div>
      ))}
    </div>
  );
}

const root = document.getElementById('app');
if (root !== null) render(<App />, root);
