import type { ComponentChildren } from 'preact';
import { lostAt } from '../api/connection.ts';
import { failureOf } from '../api/failure.ts';
import { Button } from '../components/buttons.tsx';
import { Icon } from '../components/icon.tsx';
import { countText } from '../components/numbers.ts';
import { ChangeLine, Time } from '../components/values.tsx';
import { type LiveView, maxNews, type NewChange } from './live-feed.ts';
import './live-line.css';

interface LiveLineProps {
  readonly view: LiveView;
  /** Reloads the page with the new changes. */
  readonly onShow: () => void;
}

/** The changes since the page was read, and whether all are known. Its room is reserved, so nothing moves. */
export function LiveLine({ view, onShow }: LiveLineProps) {
  const { changes } = view;
  const last = changes.at(-1);
  return (
    <div class={`live-line${last === undefined ? '' : ' has-news'}`}>
      <span role="status">
        {last === undefined ? undefined : (
          <button type="button" class="live-news" onClick={onShow}>
            {changes.length >= maxNews ? `${countText(maxNews)} or more` : countText(changes.length)}{' '}
            {changes.length === 1 ? 'new change' : 'new changes'}
          </button>
        )}
      </span>
      {last === undefined ? undefined : <Last change={last} />}
      <State view={view} onShow={onShow} />
    </div>
  );
}

function Last({ change }: { readonly change: NewChange }) {
  return (
    <span class="live-last">
      <ChangeLine change={change} detail="clock" />
    </span>
  );
}

function State({ view: { state, changes, readAt, beganLateAt }, onShow }: LiveLineProps) {
  switch (state.name) {
    case 'connecting':
      return <Line>Connecting…</Line>;
    case 'catching-up':
      return <Line>The connection is back. Reading what was recorded in between…</Line>;
    case 'lost':
      // The page says so once for all of it.
      if (lostAt.value !== undefined) return null;
      return (
        <Line isBad>
          No connection since <Time at={state.at} detail="clock" />. New changes are announced once it is back.
        </Line>
      );
    case 'restored':
      return (
        <Line isBad>
          The database was restored to an earlier state: changes shown here may no longer exist.
          <Button onClick={onShow}>Reload</Button>
        </Line>
      );
    case 'refused':
      return <Line isBad>New changes are not announced. {failureOf(state.error).title}</Line>;
    case 'live':
      break;
  }
  if (changes.length >= maxNews) return <Line>No more are counted until they are shown.</Line>;
  const since = readAt === undefined ? undefined : <Time at={readAt} detail="clock" />;
  return (
    <Line>
      {state.caughtUpAt === undefined ? undefined : (
        <>
          Caught up at <Time at={state.caughtUpAt} detail="clock" />.{' '}
        </>
      )}
      {beganLateAt === undefined ? undefined : (
        <>
          Changes until <Time at={beganLateAt} detail="clock" /> are not announced: refresh to see them.{' '}
        </>
      )}
      {changes.length > 0 ? <>Total, chart and list are of {since}.</> : <>Nothing new since {since}.</>}
    </Line>
  );
}

function Line({ isBad = false, children }: { readonly isBad?: boolean; readonly children: ComponentChildren }) {
  return (
    <span class={`live-state${isBad ? ' bad' : ''}`} role="status">
      {isBad ? <Icon name="warning" /> : undefined}
      <span>{children}</span>
    </span>
  );
}
