// The bundler turns imports of style sheets into report.css.
declare module "*.css";
