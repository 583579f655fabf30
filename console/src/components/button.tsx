import type { ButtonHTMLAttributes, ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon.tsx';

interface ButtonProps extends Omit<ButtonHTMLAttributes, 'type'> {
  readonly kind?: 'plain' | 'primary' | 'quiet' | 'danger';
  readonly icon?: IconName | undefined;
  readonly type?: 'button' | 'submit';
  readonly children?: ComponentChildren;
}

/** A button. One without words needs an `aria-label`. */
export function Button({ kind = 'plain', icon, type = 'button', children, class: more, ...rest }: ButtonProps) {
  const name = `button ${kind}${children === undefined ? ' bare' : ''}${typeof more === 'string' ? ` ${more}` : ''}`;
  return (
    <button {...rest} type={type} class={name}>
      {icon === undefined ? undefined : <Icon name={icon} />}
      {children}
    </button>
  );
}
