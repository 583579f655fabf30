import { useEffect, useState } from 'preact/hooks';
import { Icon, type IconName } from '../../../../console/src/components/icon.tsx';
import type { Problem } from '../reads/problem.ts';
import { useLanguage } from './language-context.ts';

interface NoticeProps {
  readonly problem: Problem;
  readonly onRetry: () => void;
}

/** Why there is no list, in a sentence, with a way on. */
export function ProblemNotice({ problem, onRetry }: NoticeProps) {
  const language = useLanguage();
  return (
    <Notice icon="warning" title={language.text(problem.type)} isAlert>
      <RetryTime problem={problem} />
      <button type="button" class="button" part="button" onClick={onRetry}>
        {language.text('retry')}
      </button>
    </Notice>
  );
}

interface StateProps {
  readonly icon: IconName;
  readonly title: string;
  readonly isAlert?: boolean;
  readonly children?: preact.ComponentChildren;
}

/** What is said in the place of a list. */
export function Notice({ icon, title, isAlert = false, children }: StateProps) {
  return (
    <div class="notice" part="notice">
      <span class="notice-icon">
        <Icon name={icon} size={22} />
      </span>
      <p class="notice-title" role={isAlert ? 'alert' : undefined}>
        {title}
      </p>
      {children}
    </div>
  );
}

/** The seconds until it is tried again. Nobody wants them read out one by one. */
function RetryTime({ problem: { retryAt } }: { readonly problem: Problem }) {
  const language = useLanguage();
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  if (retryAt === undefined) return null;
  return (
    <p class="soft" aria-hidden="true">
      {language.counted('retryIn', Math.max(1, Math.ceil((retryAt - now) / 1_000)))}
    </p>
  );
}
