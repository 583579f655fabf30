import type { ComponentChildren } from 'preact';
import { failureOf } from '../api/failure.ts';
import { Button, Icon } from '../components/buttons.tsx';
import { countText } from '../components/numbers.ts';
import { ChangeTypeMark, Name, Time } from '../components/values.tsx';
import { type LiveView, maxNews, type NewChange } from './live-feed.ts';
import './live-line.css';

interface LiveLineProps {
  readonly view: LiveView;
  /** Reads the page anew, with what is new. */
  readonly onShow: () => void;
}

/**
 * What was recorded since the page was read, and whether all of it is known. It has its place whatever it says, so nothing moves
 * before the reader asks for it.
 */
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

function Last({ change: { type, entity, entityId, actor, at } }: { readonly change: NewChange }) {
  return (
    <span class="live-last">
      <ChangeTypeMark type={type} short />
      <span>
        <Name text={entity} /> <Name text={entityId} />
      </span>
      <span class="muted">
        <Name text={actor} />
      </span>
      <Time at={at} detail="clock" />
    </span>
  );
}

function State({ view: { state, changes, readAt, beganLateAt }, onShow }: LiveLineProps) {
  switch (state.name) {
    case 'connecting':
      return <Told>Connecting…</Told>;
    case 'catching-up':
      return <Told>The connection is back. Reading what was recorded meanwhile…</Told>;
    case 'lost':
      return (
        <Told isBad>
          No connection since <Time at={state.at} detail="clock" />. New changes are told when it is back.
        </Told>
      );
    case 'restored':
      return (
        <Told isBad>
          The database was restored to an earlier state: what stands here may not be there any more.
          <Button onClick={onShow}>Read anew</Button>
        </Told>
      );
    case 'refused':
      return <Told isBad>New changes are not told. {failureOf(state.error).title}</Told>;
    case 'live':
      break;
  }
  if (changes.length >= maxNews) return <Told>No more are counted until they are shown.</Told>;
  const since = readAt === undefined ? undefined : <Time at={readAt} detail="clock" />;
  return (
    <Told>
      {state.caughtUpAt === undefined ? undefined : (
        <>
          Caught up at <Time at={state.caughtUpAt} detail="clock" />.{' '}
        </>
      )}
      {beganLateAt === undefined ? undefined : (
        <>
          Changes until <Time at={beganLateAt} detail="clock" /> are not told: refresh to see them.{' '}
        </>
      )}
      {changes.length > 0 ? <>Total, chart and list are of {since}.</> : <>Nothing new since {since}.</>}
    </Told>
  );
}

function Told({ isBad = false, children }: { readonly isBad?: boolean; readonly children: ComponentChildren }) {
  return (
    <span class={`live-state${isBad ? ' bad' : ''}`} role="status">
      {isBad ? <Icon name="warning" /> : undefined}
      <span>{children}</span>
    </span>
  );
}
